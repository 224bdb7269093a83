"""Results of a study's labels for videos like these."""

from dataclasses import replace
from math import isclose

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_models import make_models

from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.core.stats.label_budget import Pool, StratumCounts, bound_difference
from steadyeye.metrics.label_studies.files import read_study, write_study
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.label_reuse import ReuseResult, judge_other_model
from steadyeye.metrics.label_studies.question import Question, parse_question
from steadyeye.metrics.label_studies.study import LabelStudy, Premise, plan_study, rank_sets
from steadyeye.metrics.label_studies.video_share import (
    VideoShare,
    find_share_of_other,
    find_video_share,
    say_videos,
)

ONE_CLASS = Premise("constant-class")


def in_videos(model, videos, seed):
    """The model with its sets in so many videos, of unequal length."""
    rng = np.random.default_rng(seed)
    sets = len(model.groups) // 5
    video = np.append(np.arange(videos), rng.integers(0, videos, sets - videos) // 2)
    return replace(model, tags={**model.tags, "video": np.repeat(video, 5).astype(str)})


def plan(model, text="pm_k(k=2)", premise=ONE_CLASS, **how):
    return plan_study(model, parse_question(text), premise, **how)


def measure(study, labels):
    result = judge(study, labels)
    return find_video_share(study, labels, result), result


def bound_naively(sums, sizes, draws=100_000):
    """The lower end from its definition: exponential weights, and a video more with nothing."""
    rng = np.random.default_rng(0)
    weights = rng.exponential(size=(draws, len(sizes) + 1))
    further = sum(size**2 for size in sizes) / sum(sizes)
    shares = weights[:, :-1] @ sums / (weights[:, :-1] @ sizes + weights[:, -1] * further)
    return np.quantile(shares, 0.025)


def count_naively(study, labels):
    """Video by video, set by set: (right at least, right at most, sets) of those with any."""
    labelled = [name for name in study.candidates if name in labels]
    rows = []
    for video in sorted(set(study.videos.values())):
        least = most = size = 0.0
        for name in study.sets:
            if study.videos[name] != video:
                continue
            if name not in study.candidates:
                size += len(labelled) / len(study.candidates)
            elif name in labels:
                least += labels[name] == study.answers[name]
                most += labels[name] == study.answers[name] or not labels[name]
                size += 1
        rows.append((least, most, size))
    return np.array([row for row in rows if row[2] > 0]).T


@given(st.integers(0, 500), st.integers(2, 12), st.integers(1, 60), st.integers(0, 3))
@settings(max_examples=20)
def test_the_ends_are_those_of_their_definition(seed, videos, number, unknown):
    a, _, truth, _ = make_models(sets=60, seed=seed % 10)
    study = plan(in_videos(a, videos, seed), seed=seed)
    labels = {name: truth[name] for name in study.candidates[:number]}
    labels |= dict.fromkeys(list(labels)[:unknown], ())
    share, result = measure(study, labels)
    least, most, sizes = count_naively(study, labels)
    low, high = bound_naively(least, sizes), 1 - bound_naively(sizes - most, sizes)
    ends = share.interval
    assert (share.videos, share.unit) == (videos, "video")
    assert ends.value == result.interval.value
    assert ends.low == pytest.approx(min(low, result.interval.low), abs=0.006)
    assert ends.high == pytest.approx(max(high, result.interval.high), abs=0.006)
    if ends.value is not None:
        assert ends.low <= ends.value <= ends.high


@pytest.mark.parametrize("videos", [2, 7, 60])
def test_with_all_labels_it_is_the_interval_of_pm_k_over_videos(videos):
    a, _, truth, _ = make_models(sets=60, seed=2)
    study = plan(in_videos(a, videos, 0))
    share, _ = measure(study, {name: truth[name] for name in study.candidates})
    right = [truth[name] == study.answers.get(name) for name in study.sets]
    expected = proportion(np.array(right), np.array([study.videos[name] for name in study.sets]))
    assert isclose(share.interval.low, expected.low, abs_tol=1e-6)
    assert isclose(share.interval.high, expected.high, abs_tol=1e-6)
    assert share.interval.value == expected.value


def test_a_scene_without_a_label_may_count_or_not():
    a, _, truth, _ = make_models(sets=60, seed=2)
    a = in_videos(a, 6, 1)
    study = plan(a, premise=Premise("scene-class"))
    first = {}
    labels = {name: truth[first.setdefault(study.videos[name], name)] for name in study.sets}
    some = {name: labels[name] for name in study.candidates[:2]}
    share, result = measure(study, some)
    known = {study.videos[name] for name in some}
    least, most, sizes = [], [], []
    for video in set(study.videos.values()):
        members = [name for name in study.sets if study.videos[name] == video]
        right = sum(labels[name] == study.answers.get(name) for name in members)
        may = sum(name in study.answers for name in members)
        least.append(right if video in known else 0)
        most.append(right if video in known else may)
        sizes.append(len(members))
    low = bound_naively(least, sizes)
    high = 1 - bound_naively(np.subtract(sizes, most), sizes)
    assert share.interval.low == pytest.approx(low, abs=0.006)
    assert share.interval.high == pytest.approx(high, abs=0.006)
    assert share.interval.low <= result.interval.low
    assert share.interval.high >= result.interval.high


def test_labels_of_one_video_give_no_estimate_for_other_videos():
    a, _, truth, _ = make_models(sets=60, seed=2)
    single = plan(replace(a, tags={**a.tags, "video": np.full(len(a), "clip")}))
    labels = {name: truth[name] for name in single.candidates[:20]}
    share, result = measure(single, labels)
    assert share.interval is None
    assert say_videos(share, result) == (
        "All sets are from one video, so the labels say nothing about other videos."
    )
    study = plan(in_videos(a, 6, 1), strata="confidence")
    share, result = measure(study, {name: truth[name] for name in study.candidates[:20]})
    assert say_videos(share, result) == (
        "The order is by confidence, so nothing is said about other videos."
    )
    share, result = measure(plan(in_videos(a, 6, 1)), {})
    assert say_videos(share, result) == ""


def test_the_sentence_says_whether_more_labels_would_narrow_the_interval():
    a, _, truth, _ = make_models(sets=60, seed=2)
    few, many = plan(in_videos(a, 6, 1)), plan(a)
    text = say_videos(*measure(few, {name: truth[name] for name in few.candidates}))
    assert text.startswith("Videos like these 6: ")
    assert "% (95 % interval " in text.replace("\u202f", " ")
    assert text.endswith("; more labels will hardly narrow this, more videos will.")
    text = say_videos(*measure(many, {name: truth[name] for name in many.candidates[:10]}))
    assert text.endswith("; more labels and more videos will narrow this.")
    wide = VideoShare(3, "image", Interval(0.5, 0.0, 1.0, 9, "…"))
    _, result = measure(few, {})
    assert say_videos(wide, result).startswith("Images like these 3: 50.0")


def test_the_verdict_of_these_sets_does_not_depend_on_it():
    a, _, truth, _ = make_models(sets=60, seed=2)
    plain, several = plan(a, "pm_k(k=2) >= 30%"), plan(in_videos(a, 3, 1), "pm_k(k=2) >= 30%")
    labels = {name: truth[name] for name in plain.candidates[:30]}
    assert judge(plain, labels) == judge(several, labels)


def record(study, folder):
    (folder / "study.json").write_bytes(write_study(study))
    return read_study(folder / "study.json")


def count_naively_for_other(study, sampled, labels):
    """As `count_naively`, where sets that nobody sampled may all count unless they have a label."""
    part = np.mean([name in labels for name in sampled]) if sampled else 1.0
    rows = []
    for video in sorted(set(study.videos.values())):
        least = most = size = 0.0
        for name in (name for name in study.sets if study.videos[name] == video):
            weight = part if name not in sampled else name in labels
            right = name in labels and labels[name] == study.answers.get(name)
            least += weight * right
            most += weight * (right or (name in study.candidates and name not in labels))
            size += weight
        rows.append((least, most, size))
    return np.array([row for row in rows if row[2] > 0]).T


@given(st.integers(0, 500), st.integers(2, 12), st.integers(1, 60), st.booleans())
@settings(max_examples=20)
def test_the_ends_of_another_model_are_those_of_their_definition(
    tmp_path_factory, seed, videos, number, with_apart
):
    a, b, truth, _ = make_models(sets=60, seed=seed % 10)
    a, b = (in_videos(model, videos, seed) for model in (a, b))
    first, own = plan(a, seed=seed), plan(b, seed=seed)
    labels = {name: truth[name] for name in first.candidates[:number]}
    apart = rank_sets(set(own.candidates) - set(first.candidates), seed)
    labels |= {name: truth[name] for name in apart[:4] if with_apart}
    reuse = judge_other_model(record(first, tmp_path_factory.mktemp("study")), b, labels)
    share, ends = find_share_of_other(reuse), reuse.interval
    sampled = set(first.candidates) & set(own.candidates)
    if not sampled & set(labels):
        assert share.interval is None
        return
    least, most, sizes = count_naively_for_other(own, sampled, labels)
    low, high = bound_naively(least, sizes), 1 - bound_naively(sizes - most, sizes)
    assert (share.videos, share.interval.value, share.interval.n) == (videos, ends.value, ends.n)
    assert share.interval.low == pytest.approx(min(low, ends.low), abs=0.006)
    assert share.interval.high == pytest.approx(max(high, ends.high), abs=0.006)


def test_with_all_labels_another_model_has_the_interval_of_its_own_study(tmp_path):
    a, b, truth, _ = make_models(sets=60, seed=2)
    a, b = (in_videos(model, 7, 0) for model in (a, b))
    for premise, labels in (
        (ONE_CLASS, truth),
        (Premise("scene-class"), dict.fromkeys(truth, (b.classes[0],))),
    ):
        own = plan(b, premise=premise)
        every, _ = measure(own, labels)
        share = find_share_of_other(
            judge_other_model(record(plan(a, premise=premise), tmp_path), b, labels)
        )
        assert share.interval.low == pytest.approx(every.interval.low, abs=1e-9)
        assert share.interval.high == pytest.approx(every.interval.high, abs=1e-9)
        assert share.interval.value == every.interval.value > 0


def draw_reuse(rng, labelled, videos=12):
    """Another model's share of labels, in videos with shares from a beta distribution."""
    shares = np.repeat(rng.beta(2.8, 1.2, videos), 20)
    right = rng.random(len(shares)) < shares
    steady = right | (rng.random(len(shares)) < 0.5)
    known = rng.random(len(shares)) < 0.8  # sets that can count for the first model, too
    names = [f"{place:04d}" for place in range(len(shares))]
    of_both = [name for name, s, k in zip(names, steady, known, strict=True) if s and k]
    alone = int((steady & ~known).sum())
    serving = [names[place] for place in rng.permutation(np.flatnonzero(known))[:labelled]]
    truth = {
        name: ("yes",) if is_right else ("no",) for name, is_right in zip(names, right, strict=True)
    }
    labels = {name: truth[name] for name in set(serving) & set(of_both)}
    count = sum(classes == ("yes",) for classes in labels.values())
    pools = (
        Pool(StratumCounts(count, 0, len(labels), len(of_both))),
        Pool(StratumCounts(0, 0, 0, alone)),
    )
    low, high = bound_difference(pools)
    own = Interval(None, low / len(names), high / len(names), len(labels), "…")
    study = LabelStudy(
        question=Question("pm_k", 10),
        sets=tuple(names),
        candidates=tuple(name for name, s in zip(names, steady, strict=True) if s),
        answers=dict.fromkeys(names, ("yes",)),
        videos={name: str(place // 20) for place, name in enumerate(names)},
    )
    numbers = (len(labels), labelled, alone, 0)
    return ReuseResult(study, own, own, None, *numbers, "A", frozenset(of_both), labels)


@pytest.mark.parametrize("labelled", [20, 80])
def test_videos_like_these_have_their_share_in_it_for_another_model(labelled):
    rng = np.random.default_rng(3)
    ends = [find_share_of_other(draw_reuse(rng, labelled)).interval for _ in range(200)]
    assert np.mean([share.low <= 0.7 <= share.high for share in ends]) >= 0.95
    assert np.mean([share.high - share.low for share in ends]) < 0.75


def test_labels_of_one_video_say_nothing_of_others_for_another_model(tmp_path):
    a, b, truth, _ = make_models(sets=60, seed=2)
    a, b = (replace(m, tags={**m.tags, "video": np.full(len(m), "clip")}) for m in (a, b))
    reuse = judge_other_model(record(plan(a), tmp_path), b, truth)
    share = find_share_of_other(reuse)
    assert say_videos(share, reuse).startswith("All sets are from one video")
    none = judge_other_model(record(plan(a), tmp_path), b, {})
    assert say_videos(find_share_of_other(none), none) == ""
