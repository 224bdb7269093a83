"""Cases of `benchmarks/interval_coverage.py` for numbers that are no plain proportions.

Means over levels and operators of a sweep, their failure points, the changes that `explain`
measures and their difference from a control, and mAP. The truth is the mean of a large population,
of mAP that of the classes that a sample holds. Intervals are those of the package itself.

    python benchmarks/coverage_statistics.py [--tries 2000] [--only mAP]
"""

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from interval_coverage import CORRELATIONS, VIDEOS, Covered, line, print_head
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

from steadyeye.core.boxes import BoxTable
from steadyeye.core.stats import bootstrap, bounded_means
from steadyeye.core.stats.class_means import FEWEST, less, mean_difference, mean_of_classes
from steadyeye.degradation.failure_points import first_below
from steadyeye.metrics.detection.frame_ap import ap, spread_of
from steadyeye.metrics.detection.matching import Matched, match

POPULATION = 40_000  # images
WIDTHS = 200
LEVELS = 30
Floats = NDArray[np.float64]


def latent(
    rng: np.random.Generator, tries: int, videos: int, correlation: float
) -> tuple[Floats, NDArray[np.int64]]:
    """(tries, n) standard normal numbers of images, and (n,) the video of each: 1 to 12 images."""
    sizes = np.round(np.exp(np.linspace(0, 2.5, videos))).astype(int)
    video = np.repeat(np.arange(videos), sizes)
    shared = rng.normal(size=(tries, videos))[:, video]
    own = rng.normal(size=(tries, len(video)))
    return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own, video


def means(
    values: Callable[[Floats], Floats],
    rng: np.random.Generator,
    videos: int,
    correlation: float,
    tries: int,
) -> Covered:
    """The mean of bounded values of images; `values`: of standard normal numbers, 0…1."""
    truth = float(values(norm.ppf((np.arange(100_000) + 0.5) / 100_000)).mean())
    hidden, video = latent(rng, tries, videos, correlation)
    sample = values(hidden)
    totals = np.tile(np.bincount(video).astype(float), (tries, 1))
    sums = np.stack([sample[:, video == v].sum(axis=1) for v in range(videos)], axis=1)
    at = np.full(tries, truth)
    above = bounded_means.chances(sums, totals, at) < bounded_means.TAIL
    below = bounded_means.chances(totals - sums, totals, 1 - at) < bounded_means.TAIL
    low, high = bounded_means.intervals(sums[:WIDTHS], totals[:WIDTHS])
    return Covered(above, below, float(np.mean(high - low)))


def degraded(
    rng: np.random.Generator, videos: int, correlation: float, tries: int
) -> list[Covered]:
    """Accuracy over 30 levels: an image is right up to its own level; 6, 58 and 95 % on average."""
    levels = ((-8, 12), (18, 8), (40, 12))
    return [
        means(
            lambda z, a=a, b=b: np.clip(np.floor(a + b * z), 0, LEVELS) / LEVELS,
            rng, videos, correlation, tries,
        )
        for a, b in levels
    ]  # fmt: skip


def changed(rng: np.random.Generator, videos: int, correlation: float, tries: int) -> list[Covered]:
    """|Δ probability|: most change little; or nine in ten by 0.02 and one in ten by 0.8."""
    shapes = (lambda z: norm.cdf(z) ** 6, lambda z: np.where(z > 1.28, 0.8, 0.02))
    return [means(shape, rng, videos, correlation, tries) for shape in shapes]


def failure(rng: np.random.Generator, videos: int, correlation: float, tries: int) -> list[Covered]:
    """The level at which half of the images fail, level 9 of 30 on average."""
    level = np.arange(LEVELS + 1)
    truth = int(first_below(norm.cdf((9.5 - level) / 5)[:, None], level, 0.5)[0])
    hidden, video = latent(rng, tries, videos, correlation)
    weights = bootstrap.draws(video.astype(str))
    ends = np.empty((tries, 2))
    for i, z in enumerate(hidden):
        right = (level[:, None] < 9.5 + 5 * z).astype(np.float32)
        ends[i] = [
            first_below(end[:, None], level, 0.5)[0]
            for end in bootstrap.mean_ends(right, weights, (0, 1))
        ]
    width = float(np.mean(np.minimum(ends[:, 1], LEVELS + 1) - ends[:, 0]))
    return [Covered(ends[:, 0] > truth, ends[:, 1] < truth, width)]


def median_class(
    rng: np.random.Generator, videos: int, correlation: float, tries: int
) -> list[Covered]:
    """The median over classes of their drops: all alike, one half lower, and spread; 8 or 31.

    A video has 12 anchors, most of one or two classes; classes are as unequal as words are.
    """
    trials = []
    for classes in (8, 31):
        alike = np.full(classes, 0.3)
        halves = np.where(np.arange(classes) % 2, 0.1, 0.6)
        for chance in (alike, halves, norm.cdf(np.linspace(-2, 1, classes))[::-1]):
            often = 1 / np.arange(1, classes + 1)
            odds = (1 - correlation) / correlation
            rows = []
            for _ in range(tries):
                mix = rng.dirichlet(2 * often, videos)
                totals = rng.multinomial(12, mix / mix.sum(axis=1, keepdims=True))
                own = rng.beta(chance * odds, (1 - chance) * odds, size=totals.shape)
                present = totals.any(axis=0)
                wins = rng.binomial(totals, own)[:, present] * 1.0
                ends = bounded_means.median_interval(wins, totals[:, present] * 1.0)
                rows.append((*ends, np.median(chance[present])))
            low, high, truth = np.array(rows).T
            trials.append(Covered(low > truth, high < truth, float(np.mean(high - low))))
    return trials


class Pictures(NamedTuple):
    """A population of images with objects and detections; `skill`: how well objects are found."""

    classes: int
    skill: float
    correlation: float

    def draw(self, rng: np.random.Generator, videos: int, size: int) -> tuple[Matched, NDArray]:
        """Detections matched to objects, and the video of each image, `size` on average."""
        (matched,), video = self.draw_both(rng, videos, size, (self.skill,))
        return matched, video

    def draw_both(
        self, rng: np.random.Generator, videos: int, size: int, skills: Sequence[float]
    ) -> tuple[list[Matched], NDArray]:
        """As `draw`, for detectors of several skills on the same images.

        Classes are as unequal as words are (1, 1/2, 1/3 …) and the more of one kind within a video
        the higher the correlation; so are difficulty and the number of false positives. Two objects
        and one false positive an image.
        """
        k, rho = self.classes, self.correlation
        often = 1 / np.arange(1, k + 1)
        often /= often.sum()
        sizes = (
            np.ones(videos, int)
            if size == 1
            else rng.integers(size // 2, 3 * size // 2 + 1, videos)
        )
        video = np.repeat(np.arange(videos), sizes)
        n = len(video)
        mix = (
            rng.dirichlet(often * k * (1 - rho) / rho, videos)
            if rho
            else np.tile(often, (videos, 1))
        )
        cumulated = mix.cumsum(axis=1)[:, :-1]
        shared, own = rng.normal(size=videos), rng.normal(size=n)

        def labels(of: NDArray) -> NDArray:
            return (rng.random(len(of))[:, None] > cumulated[video[of]]).sum(axis=1)

        image = np.repeat(np.arange(n), rng.poisson(2, n))
        label = labels(image)
        plain = np.random.default_rng(0).normal(0, 1, k)[label] + 1.5 * (
            np.sqrt(rho) * shared[video[image]]
            + np.sqrt((1 - rho) / 2) * (own[image] + rng.normal(size=len(image)))
        )
        place = np.arange(len(image)) * 20.0
        boxes = np.stack([place, 0 * place, place + 10, 0 * place + 10], axis=1)
        truth = table(image, label, boxes, np.ones(len(image)))

        def detect(ease: Floats) -> Matched:
            detected = rng.random(len(image)) < expit(ease + 1.5)
            score = expit(ease + 0.7 * rng.normal(size=len(image)) + 0.5)
            often_false = np.exp(0.5 * shared[video] * np.sqrt(rho))
            false = np.repeat(np.arange(n), rng.poisson(often_false))
            other = np.where(
                rng.random(len(false)) < 0.5, rng.choice(k, len(false), p=often), labels(false)
            )
            sure = expit(1.2 * rng.normal(size=len(false)) - 1.2)
            nowhere = np.tile([0.0, 100, 10, 110], (len(false), 1))
            at = np.concatenate([image[detected], false])
            order = np.argsort(at, kind="stable")
            columns = (
                at,
                np.concatenate([label[detected], other]),
                np.concatenate([boxes[detected], nowhere]),
                np.concatenate([score[detected], sure]),
            )
            return match(truth, table(*(column[order] for column in columns)), n, k)

        return [detect(plain + skill) for skill in skills], video


def table(image: NDArray, label: NDArray, boxes: Floats, score: Floats) -> BoxTable:
    """Boxes of 10 × 10 pixels."""
    n = len(image)
    return BoxTable(image, label, boxes, score, np.zeros(n, bool), np.full(n, 100.0))


def mean_ap(
    rng: np.random.Generator, videos: int, correlation: float, tries: int, size: int = 6
) -> list[Covered]:
    """MAP at IoU 0.5: 8 or 30 classes, of AP 0.3, 0.75 and 0.95 on average."""
    trials = []
    measure = ap((0.5,))
    for classes in (8, 30):
        for skill in (-2.0, 0.5, 2.5):
            pictures = Pictures(classes, skill, correlation if size > 1 else 0.0)
            every, _ = pictures.draw(np.random.default_rng(5), POPULATION // size, size)
            truths = measure(every, None)[0]
            rows = []
            for _ in range(tries):
                matched, video = pictures.draw(rng, videos, size)
                moved = spread_of(matched, measure, video.astype(str))
                if not moved.is_present.any() or np.median(moved.videos[moved.is_present]) < FEWEST:
                    continue
                own = mean_of_classes(moved, len(video))
                rows.append((own.low, own.high, truths[moved.is_present].mean()))
            trials.append(count_misses(rows, tries))
    return trials


def count_misses(rows: list[tuple[float, float, float]], tries: int) -> Covered:
    """The sides on which intervals miss; `rows`: (low, high, truth) of tries with an interval."""
    # if at most one sample in ten gets an interval, the result is "too few"
    if len(rows) <= tries / 10:
        return Covered(None, None, None)
    low, high, truth = np.array(rows).T
    return Covered(low > truth, high < truth, float(np.mean(high - low)))


def apart(
    rng: np.random.Generator, videos: int, correlation: float, tries: int, size: int = 6
) -> list[Covered]:
    """The difference of mAP of two detectors on the same images, 8 classes: none, some and much."""
    trials = []
    measure = ap((0.5,))
    for skills in ((0.5, 0.5), (2.5, 2.5), (1.0, 0.0), (2.5, -2.0)):
        pictures = Pictures(8, 0.0, correlation if size > 1 else 0.0)
        every, _ = pictures.draw_both(np.random.default_rng(5), POPULATION // size, size, skills)
        first, second = (measure(detections, None)[0] for detections in every)
        rows = []
        for _ in range(tries):
            both, video = pictures.draw_both(rng, videos, size, skills)
            moved = less(
                *(spread_of(detections, measure, video.astype(str)) for detections in both)
            )
            own = mean_difference(moved, len(video))
            if own.low is not None:
                rows.append((own.low, own.high, (first - second)[moved.is_present].mean()))
        trials.append(count_misses(rows, tries))
    return trials


def singly_apart(
    rng: np.random.Generator, videos: int, correlation: float, tries: int
) -> list[Covered]:
    """The same of images that each stand for themselves, four where there is one video."""
    return apart(rng, 4 * videos, 0.0, tries, 1)


def single(rng: np.random.Generator, videos: int, correlation: float, tries: int) -> list[Covered]:
    """MAP of images that each stand for themselves, four where there is one video."""
    return mean_ap(rng, 4 * videos, 0.0, tries, 1)


CASES = {
    "mean over levels": degraded,
    "change in `explain`": changed,
    "failure point": failure,
    "median class": median_class,
    "mAP": mean_ap,
    "mAP, 4 × as many single images": single,
    "difference of mAP": apart,
    "difference of mAP, 4 × as many single images": singly_apart,
}


def main() -> None:
    """Print the coverage of each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=2_000)
    parser.add_argument("--only", choices=sorted(CASES))
    parser.add_argument("--videos", type=int, nargs="*", default=VIDEOS)
    arguments = parser.parse_args()
    print_head()
    for name in [arguments.only] if arguments.only else CASES:
        # single images have no videos, hence no correlation
        correlations = CORRELATIONS[: 1 if CASES[name] in (single, singly_apart) else None]
        for videos in arguments.videos:
            row = line(name, CASES[name], videos, arguments.tries, correlations)
            print(row, flush=True)


if __name__ == "__main__":
    main()
