"""Coverage of the interval for videos like these, from a few labels of sets.

    python benchmarks/label_videos.py [--tries 1000]

Prints a Markdown table, the same every time. The share of right sets is beta distributed over
videos; half of the other sets are consistently wrong, the rest need no label. Videos have 20 sets
each, or 4 to 90. Labels are drawn uniformly without replacement from the consistent sets.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.stats.intervals import korn_graubard
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.question import Question
from steadyeye.metrics.label_studies.study import LabelStudy, rank_sets
from steadyeye.metrics.label_studies.video_share import find_video_share

VIDEOS = (5, 16, 50, 200)
LABELS = (25, 50, 100)
POPULATIONS = ((0.4, 0.3, False), (0.7, 0.8, True), (0.9, 0.3, True))
"""Mean share, correlation of the sets of a video, and whether videos are of unequal length."""

Ends = tuple[float, float]
Ints = NDArray[np.int64]


def draw_study(
    rng: np.random.Generator, videos: int, population: tuple[float, float, bool], seed: int
) -> tuple[LabelStudy, dict[str, tuple[str, ...]]]:
    """A study of pm-k of so many videos, and the label of each set."""
    mean, alike, unequal = population
    sizes = rng.integers(4, 91, videos) if unequal else np.full(videos, 20)
    size = 1 / alike - 1
    right = rng.binomial(sizes, rng.beta(mean * size, (1 - mean) * size, videos))
    wrong = rng.binomial(sizes - right, 0.5)
    answers, labels, video_of = {}, {}, {}
    for video, counts in enumerate(
        zip(sizes.tolist(), right.tolist(), wrong.tolist(), strict=True)
    ):
        for place in range(counts[0]):
            name = f"{video}/{place}"
            video_of[name] = str(video)
            labels[name] = ("right" if place < counts[1] else "wrong",)
            if place < counts[1] + counts[2]:
                answers[name] = ("right",)
    study = LabelStudy(
        question=Question("pm_k", 10),
        sets=tuple(video_of),
        candidates=tuple(rank_sets(answers, seed)),
        answers=answers,
        videos=video_of,
    )
    return study, labels


def measure(
    study: LabelStudy, labels: dict[str, tuple[str, ...]], number: int
) -> tuple[Ends, Ends] | None:
    """The interval after so many labels, and that of Korn and Graubard; None without a label."""
    some = {name: labels[name] for name in study.candidates[:number]}
    share = find_video_share(study, some, judge(study, some)).interval
    if share is None or share.low is None or share.high is None:
        return None
    return (share.low, share.high), find_survey_ends(study, some)


def find_survey_ends(study: LabelStudy, labels: dict[str, tuple[str, ...]]) -> Ends:
    """Korn and Graubard's interval from a linearised total of each video, for comparison."""
    names = {video: place for place, video in enumerate(dict.fromkeys(study.videos.values()))}

    def count(sets: list[str]) -> Ints:
        places = [names[study.videos[name]] for name in sets]
        return np.bincount(np.array(places, dtype=np.int64), minlength=len(names))

    sizes, candidates = count(list(study.sets)), count(list(study.candidates))
    right = [name for name in labels if labels[name] == study.answers[name]]
    share = len(right) / len(labels)
    part = len(labels) / len(study.candidates)
    totals = share * candidates + (count(right) - share * count(list(labels))) / part
    value = share * len(study.candidates) / len(study.sets)
    gaps = (totals - value * sizes) / sizes.mean()
    error = float(np.sqrt((gaps**2).sum() / (len(names) - 1) / len(names)))
    return korn_graubard(value, error, len(names) - 1) if error else (value, value)


def print_coverage(tries: int) -> None:
    """The lowest coverage over populations with its mean width, and that of the other interval."""
    rng = np.random.default_rng(0)
    heads = [f"{number} labels" for number in LABELS]
    survey = [f"Korn–Graubard, {number}" for number in LABELS]
    print("| " + " | ".join(["videos", *heads, *survey]) + " |")
    print("|---|" + "---|" * (2 * len(LABELS)))
    for videos in VIDEOS:
        cells: list[tuple[str, str]] = []
        for number in LABELS:
            rows = [run_tries(rng, videos, number, population, tries) for population in POPULATIONS]
            lowest = [min(rows, key=lambda row: row[side][0])[side] for side in (0, 1)]
            cells.append(tuple(f"{share:.1%} ({width:.2f})" for share, width in lowest))
        print(f"| {videos} | " + " | ".join(pair[side] for side in (0, 1) for pair in cells) + " |")


def run_tries(
    rng: np.random.Generator,
    videos: int,
    number: int,
    population: tuple[float, float, bool],
    tries: int,
) -> tuple[Ends, Ends]:
    """(coverage, mean width) of the interval and of Korn and Graubard's."""
    mean = population[0]
    studies = (draw_study(rng, videos, population, seed) for seed in range(tries))
    pairs = [measure(study, labels, number) for study, labels in studies]
    ends = np.array([pair for pair in pairs if pair is not None])
    covered = np.mean((ends[..., 0] <= mean) & (mean <= ends[..., 1]), axis=0).tolist()
    widths = np.mean(ends[..., 1] - ends[..., 0], axis=0).tolist()
    return (covered[0], widths[0]), (covered[1], widths[1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=1000)
    print_coverage(parser.parse_args().tries)


if __name__ == "__main__":
    main()
