"""What few labels can show: on pools like the released sets, and on DAVIS.

    python benchmarks/label_promises.py --data FOLDER [--tries 10000]

Prints Markdown, the same every time. FOLDER has `imagenet_vid_robust` and `ytbb_robust` with the
released metadata, and `davis`. Sets are those of the metadata with one class; accuracy and pm-10
are those of published models at the 10th, 50th and 90th percentile, and half of the wrong anchors
have a set that is consistently wrong. On DAVIS the packaged models predict every frame. Boundaries
and intervals are those of `steadyeye.core.stats.label_budget`, read after every label.
"""

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from labels import Ints, boundaries, count_right, study

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.label_budget import RequiredShare, count_ends, fixed_sample
from steadyeye.data.sources.imagenet_vid_robust import imagenet_vid_robust
from steadyeye.data.sources.ytbb_robust import ytbb_robust
from steadyeye.data.video.pm_set_source import FrameSets
from steadyeye.metrics.label_studies.judge import LEAST, judge
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import (
    LabelStudy,
    StopRule,
    check_labels,
    parse_premise,
    plan_study,
)
from steadyeye.metrics.testbed.published_models import read_published

HALF_WIDTH = 0.05
DISTANCE = 0.1  # of the true pm-k from the gate's requirement
MOST = 1_000  # labels of a study of a width, which is narrow long before
DAVIS_CLASSES = {
    "blackswan": ("black swan",),
    "bmx-trees": ("mountain bike", "bicycle-built-for-two"),
    "car-shadow": ("minivan", "sports car", "convertible", "racer"),
    "dog": ("English setter", "Brittany spaniel", "clumber"),
    "drift-straight": ("racer", "sports car"),
    "goat": ("ibex", "ram"),
    "horsejump-high": ("sorrel",),
    "kite-surf": ("parachute",),
    "motocross-jump": ("motocross bike",),
    "scooter-black": ("motor scooter", "moped"),
}
"""The objects of the sequences, as classes of ImageNet if it has one."""


@dataclass(frozen=True)
class Pool:
    """Sets and a model: `total` of them, `consistent` ones and how many are `right`."""

    name: str
    total: int
    consistent: int
    right: int


def make_pool(name: str, total: int, shares: tuple[float, float], steadily_wrong: float) -> Pool:
    """`shares`: accuracy, pm-10. `steadily_wrong`: of wrong anchors, those of consistent sets."""
    accuracy, pm = shares
    right = round(pm * total)
    return Pool(name, total, right + round(steadily_wrong * (1 - accuracy) * total), right)


def published_pools(data: str, total: int) -> Iterator[Pool]:
    """Pools like a weak, a middling and a strong one of the published models on a released set."""
    models = read_published(data)
    order = np.argsort(models.perturbed, kind="stable")
    for quantile in (0.1, 0.5, 0.9):
        at = int(order[round(quantile * (len(order) - 1))])
        shares = float(models.original[at]), float(models.perturbed[at])
        name = f"{models.title}, {models.models[at]}, pm-10 {shares[1]:.0%}"
        yield make_pool(name, total, shares, 0.5)


def read_released(source: FrameSets) -> Predictions:
    """The labels of a released set as a table whose predictions are the labels themselves."""
    members, classes = source.members, source.classes
    assert classes is not None, "a released set has a class list"
    truth = np.zeros((len(members), len(classes.names)), dtype=np.bool_)
    for row, member in enumerate(members):
        truth[row, list(member.truth)] = True
    scores = truth.astype(np.float32)
    return Predictions(
        model="labels",
        data=source.name,
        classes=tuple(classes.names),
        model_classes=tuple(classes.names),
        columns=source.columns,
        ids=np.array(source.ids),
        groups=np.array([member.group for member in members]),
        truth=truth,
        scores=scores,
        top=scores.argmax(axis=1)[:, None].astype(np.int32),
        top_scores=scores.max(axis=1, keepdims=True),
        errors=np.full(len(members), ""),
        tags={"offset": np.array([member.offset for member in members])},
    )


def narrow_from(pool: Pool, candidates: int, labels: int) -> Ints:
    """(labels,) the fewest right of 1, 2, … labelled, above a half, with an interval of ± 5 pp."""

    def is_narrow(right: int, labelled: int) -> bool:
        low, high = count_ends(right, labelled, candidates)
        return (high - low) / 2 <= HALF_WIDTH * pool.total

    ends, at = [labels + 1] * (LEAST - 1), 0
    for labelled in range(LEAST, labels + 1):
        middle = (labelled + 1) // 2
        at = max(at, middle)
        while at <= labelled and not is_narrow(at, labelled):
            at += 1
        while at > middle and is_narrow(at - 1, labelled):
            at -= 1
        ends.append(at)
    return np.array(ends)


def measure_width(pool: Pool, candidates: int, tries: int) -> tuple[float, float]:
    """Median labels until the interval is ± 5 pp, and how often it then holds the truth."""
    rng = np.random.default_rng(2)
    labels = min(candidates, MOST)
    narrow, n = narrow_from(pool, candidates, labels), np.arange(1, labels + 1)
    ends = lru_cache(maxsize=None)(count_ends)
    taken, covers = [], []
    for counts in count_right(rng, candidates, pool.right, labels, tries):
        stops = (counts >= narrow) | (counts <= n - narrow)
        stops[:, -1] = True
        at = stops.argmax(axis=1)
        for right, labelled in zip(counts[np.arange(len(at)), at].tolist(), n[at], strict=True):
            low, high = ends(right, int(labelled), candidates)
            covers.append(low <= pool.right <= high)
        taken.append(n[at])
    return float(np.median(np.concatenate(taken))), float(np.mean(covers))


def measure_gate(pool: Pool, candidates: int, tries: int) -> tuple[list[float], float]:
    """Median labels until decided, 10 points below and above pm-10; wrong verdicts at worst.

    At worst: one set too few, or just enough.
    """
    rng, medians, wrong = np.random.default_rng(3), [], []
    for sign in (-1, 1):
        needed = pool.right + round(sign * DISTANCE * pool.total)
        requirement = RequiredShare(needed, candidates, pool.total)
        if requirement.decide(0, 0).passes is False:
            medians.append(0.0)
            continue
        ends = boundaries(requirement)
        medians.append(float(np.median(study(rng, ends, pool.right, tries)[1])))
        for truth, verdict in ((needed - 1, True), (needed, False)):
            passed, _ = study(rng, ends, truth, tries)
            wrong.append(float(np.mean(passed == verdict)))
    return medians, max(wrong, default=0.0)


def word_ratio(ratio: float) -> str:
    """How many times fewer; 1× below one and a half."""
    return "1×" if ratio < 1.5 else f"{ratio:.1f}×"


def print_pool(pool: Pool, candidates: int, tries: int) -> None:
    """A row of the table."""
    labels, covered = measure_width(pool, candidates, tries)
    uniform, _ = measure_width(pool, pool.total, tries // 10)
    medians, wrong = measure_gate(pool, candidates, tries)
    value = pool.right / pool.total
    informed = [fixed_sample(value, value + sign * DISTANCE, pool.total) for sign in (-1, 1)]
    planned = [
        fixed_sample(value + sign * (DISTANCE - HALF_WIDTH), value + sign * DISTANCE, pool.total)
        for sign in (-1, 1)
    ]
    gate = ", ".join(
        f"{median:.0f} ({fixed}; {five})"
        for median, fixed, five in zip(medians, informed, planned, strict=True)
    )
    print(
        f"| {pool.name} | {labels:.0f} ({uniform:.0f}) | {word_ratio(uniform / labels)} "
        f"| {covered:.1%} | {gate} | {wrong:.2%} |"
    )


def print_pools(root: Path, tries: int) -> None:
    """The table of the released sets, and of what labels cannot make cheaper."""
    pools = []
    for source in (
        imagenet_vid_robust(str(root / "imagenet_vid_robust")),
        ytbb_robust(str(root / "ytbb_robust")),
    ):
        table = read_released(source)
        data, sets = source.name.partition(",")[0], len(set(table.groups.tolist()))
        try:
            check_labels(table, parse_question("pm_k(k=10)"))
        except UsageError as error:
            sentence = str(error).partition(", first")[0]
            print(f"{sentence}: the premise is refused; the rows are of the other sets.\n")
            sets -= int(sentence.partition(" of ")[0].replace(",", ""))
        pools += published_pools(data, sets)
    print(
        "| sets | labels for ± 5 pp (uniform over all sets) | fewer | coverage "
        "| gate 10 pp below pm-10, 10 pp above (sample that knew it; planned for 5 pp) "
        "| wrong verdicts at worst |\n|---|---|---|---|---|---|"
    )
    for pool in pools:
        print_pool(pool, pool.consistent, tries)
    steady = make_pool("consistently wrong: every wrong anchor's set", 2_000, (0.65, 0.6), 1.0)
    print_pool(steady, steady.consistent, tries)
    print_pool(Pool("accuracy 75 %", 2_000, 2_000, 1_500), 2_000, tries)


def count_scenes(study_of_scenes: LabelStudy) -> tuple[int, bool | None]:
    """After how many scenes a study is enough, and its verdict."""
    labels: dict[str, tuple[str, ...]] = {}
    for name in study_of_scenes.order:
        if judge(study_of_scenes, labels).enough:
            break
        if not any(other in labels for other in study_of_scenes.scenes.get(name, ())):
            labels[name] = DAVIS_CLASSES[name.split("/")[0]]
    result = judge(study_of_scenes, labels)
    return result.labels, result.holds


def print_davis(root: Path, tries: int) -> None:
    """One label a scene, with every frame an anchor."""
    data = f"every_frame(path='{root / 'davis' / 'JPEGImages'}', fps=24)"
    premise = parse_premise("scene-class")
    print(
        "\n| model | sets, consistent, scenes of these | pm-10 "
        "| scenes for ± 5 pp (uniform labels) | scenes for a gate 10 pp below, above |\n"
        "|---|---|---|---|---|"
    )
    for model in ("efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2"):
        with tempfile.TemporaryDirectory() as out:
            table = se.evaluate(model, data, out=out).predictions
        question = parse_question("pm_k(k=10)")
        every = plan_study(table, question, premise)
        result = judge(every, {name: DAVIS_CLASSES[name.split("/")[0]] for name in every.scenes})
        share = result.interval.value
        assert share is not None, "all scenes are labelled"
        width = plan_study(table, question, premise, stop=StopRule(target=HALF_WIDTH))
        pool = Pool(model, len(every.sets), every.countable, round(share * len(every.sets)))
        uniform, _ = measure_width(pool, pool.total, tries // 10)
        gates = []
        for sign in (-1, 1):
            required = min(max(share + sign * DISTANCE, 0.01), 1.0)
            gate_question = parse_question(f"pm_k(k=10) >= {required:.3f}")
            labels, holds = count_scenes(plan_study(table, gate_question, premise))
            assert holds == (sign < 0), f"{gate_question} is decided wrongly"
            gates.append(str(labels))
        print(
            f"| {model} | {pool.total}, {pool.consistent}, {len(every.scenes)} | {share:.1%} "
            f"| {count_scenes(width)[0]} ({uniform:.0f}) | {', '.join(gates)} |"
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tries", type=int, default=10_000)
    arguments = parser.parse_args()
    print_pools(arguments.data, arguments.tries)
    print_davis(arguments.data, arguments.tries)


if __name__ == "__main__":
    main()
