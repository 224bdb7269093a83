"""The number of decisions that the shortcut of a review saves, simulated on DAVIS.

    python benchmarks/review_hours.py [--seeds 20] [data]

A simulated reviewer calls two frames similar by a rule on the masks of the object in both: the
masks, centred on each other, overlap with an IoU of at least 0.3 (0.5); the larger is at most twice
the smaller; and the object is at most four times as sharp in one (variance of the Laplacian within
its mask). With a share of errors, that share of all answers is reversed.

A pair and the same two frames in the other order (`twins`) are one question. The forecast, the
rounds, the audits and their steps are those of the product. Every seed draws other anchors and
other audits. `saved`: pairs of the set / decisions. `wrong`: of pairs accepted in bulk, and of all
accepted ones. `lost`: the share of similar neighbours left out. `broken`: the share of seeds with
more than 1 % wrong among all accepted ones. `all asked`: no audit passed.
"""

import argparse
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.seeds import stream
from steadyeye.review.bulk.audit import is_worth, judge_step, plan_sizes
from steadyeye.review.bulk.skip_pairs import ROUNDS, plan_round

K = 10
MOST = 0.01


@dataclass(frozen=True, eq=False)
class Thumbnail:
    """The object in a frame: its mask cut to its box, and its sharpness; None: not visible."""

    mask: NDArray[np.bool_]
    sharp: float


@dataclass(frozen=True)
class Likeness:
    """The inputs of the rule; the ratios are ≥ 1."""

    iou: float
    area: float
    sharp: float


def read_thumbnail(picture: Path) -> Thumbnail | None:
    """The object in a frame of DAVIS; None where fewer than 20 pixels of it are seen."""
    grey = cv2.imread(str(picture), cv2.IMREAD_GRAYSCALE)
    place = picture.parents[2] / "Annotations" / picture.parent.name / f"{picture.stem}.png"
    mask = cv2.imread(str(place), cv2.IMREAD_UNCHANGED)
    mask = (mask if mask.ndim == 2 else mask.max(axis=2)) > 0
    y, x = np.nonzero(mask)
    if len(y) < 20:
        return None
    box = np.s_[y.min() : y.max() + 1, x.min() : x.max() + 1]
    edges = cv2.Laplacian(grey[box], cv2.CV_16S)
    return Thumbnail(mask[box], float(edges[mask[box]].var()))


def likeness(first: Thumbnail | None, other: Thumbnail | None) -> Likeness:
    """How alike the object is in two frames, the masks' boxes centred on each other."""
    if first is None or other is None:
        return Likeness(0.0, np.inf, np.inf)
    height, width = np.maximum(first.mask.shape, other.mask.shape) + 2
    laid = np.zeros((2, height, width), bool)
    for layer, mask in zip(laid, (first.mask, other.mask), strict=True):
        y, x = (height - mask.shape[0]) // 2, (width - mask.shape[1]) // 2
        layer[y : y + mask.shape[0], x : x + mask.shape[1]] = mask
    areas = sorted((first.mask.sum(), other.mask.sum()))
    sharps = sorted((max(first.sharp, 1e-6), max(other.sharp, 1e-6)))
    iou = (laid[0] & laid[1]).sum() / (laid[0] | laid[1]).sum()
    return Likeness(float(iou), areas[1] / areas[0], sharps[1] / sharps[0])


Alike: TypeAlias = Mapping[str, Mapping[tuple[int, int], Likeness]]
"""Video → pair of frames, at most K apart → how alike they are."""


def measure(data: Path) -> Alike:
    """How alike all frames of all sequences are."""
    similarities = {}
    for folder in sorted((data / "davis" / "JPEGImages").iterdir()):
        thumbnails = [read_thumbnail(picture) for picture in sorted(folder.glob("*.jpg"))]
        similarities[folder.name] = {
            (a, b): likeness(thumbnails[a], thumbnails[b])
            for a in range(len(thumbnails))
            for b in range(a + 1, min(a + K + 1, len(thumbnails)))
        }
    return similarities


@dataclass(frozen=True)
class Rule:
    """The rule for similar frames, in a set of so many anchors per video (None: every frame).

    `alone`: every anchor counts as its own video.
    """

    iou: float
    blur: float
    anchors: int | None
    errors: float = 0.0
    alone: bool = False


@dataclass(eq=False)
class Video:
    """The pairs of a video: frames, truth, how many neighbours each stands for, answers."""

    points: NDArray[np.float64]
    truth: Sequence[bool]
    stands_for: Sequence[int]
    answers: list[bool | None]
    implied: Sequence[int] = ()

    def settle(self, sure: float) -> None:
        """Asks rounds until nothing is in doubt."""
        while True:
            step = plan_round(self.points, self.answers, sure)
            if not step.ask:
                self.implied = step.implied
                return
            for number in step.ask:
                self.answers[number] = self.truth[number]


def videos(alike: Alike, rule: Rule, seed: int) -> Sequence[Video]:
    """The pairs of a set whose anchors are drawn anew; both ways round they are one pair."""
    footage = []
    for name, pairs in alike.items():
        rng = stream(seed, name)
        frames = sorted({frame for pair in pairs for frame in pair})
        order = rng.permutation(frames)[: rule.anchors or len(frames)].tolist()
        for anchors in [[frame] for frame in order] if rule.alone else [order]:
            chosen = [pair for pair in pairs if set(pair) & set(anchors)]
            truth = [similar(pairs[pair], rule) != (rng.random() < rule.errors) for pair in chosen]
            stands_for = [sum(frame in anchors for frame in pair) for pair in chosen]
            footage.append(Video(np.array(chosen, float), truth, stands_for, [None] * len(chosen)))
    return footage


def similar(pair: Likeness, rule: Rule) -> bool:
    """What a reviewer who goes by a rule calls similar."""
    return pair.iou >= rule.iou and pair.area <= 2 and pair.sharp <= rule.blur


def review(alike: Alike, rule: Rule, seed: int) -> Mapping[str, float]:
    """One review from its first pair to its last."""
    every = videos(alike, rule, seed)
    bulk: list[tuple[Video, int]] | None = None
    for number, (sure, risk) in enumerate([*ROUNDS, (2.0, 0.0)]):
        for video in every:
            video.settle(sure)
        bulk = audited(every, risk, f"{seed} {number}")
        if bulk is not None:
            break
    bulk = bulk or []
    weight = [(v, n, v.stands_for[n]) for v in every for n in range(len(v.truth))]
    directed = sum(w for _, _, w in weight)
    by_people = sum(w for v, n, w in weight if v.answers[n])
    wrong = sum(not v.truth[n] for v, n in bulk)
    alike_ones = sum(w for v, n, w in weight if v.truth[n])
    questions = sum(answer is not None for v in every for answer in v.answers)
    return {
        "pairs": directed,
        "twins": directed - len(weight),
        "asked": questions,
        "saved": directed / questions,
        "bulk": len(bulk),
        "wrong_bulk": wrong / max(len(bulk), 1),
        "wrong_all": wrong / max(by_people + len(bulk), 1),
        "lost": (alike_ones - by_people - (len(bulk) - wrong)) / alike_ones,
        "similar": alike_ones / directed,
    }


def audited(every: Sequence[Video], risk: float, seed: str) -> list[tuple[Video, int]] | None:
    """What may be accepted in bulk, a neighbour each; None where the audit fails."""
    pool = [(v, n) for v in every for n in v.implied for _ in range(v.stands_for[n])]
    if not pool:
        return []
    by_people = sum(w for v in every for w, s in zip(v.stands_for, v.answers, strict=True) if s)
    planned = plan_sizes(len(pool), by_people, MOST, risk) if risk else (len(pool),)
    order = [pool[n] for n in stream(0, "audit", seed).permutation(len(pool))]
    says = "more" if is_worth(planned[0], len(pool)) else "useless"
    step = -1
    while says == "more":
        step += 1
        wrong = 0
        for video, number in order[: planned[step]]:
            video.answers[number] = video.truth[number]
            wrong += not video.truth[number]
        says = judge_step(wrong, step, planned, len(pool))
    if says != "pass":
        return None
    return [(v, n) for v, n in order[planned[step] :] if v.answers[n] is None]


RULES = {
    "IoU 0.3, every frame an anchor": Rule(0.3, 4, None),
    "IoU 0.3, 30 anchors a video": Rule(0.3, 4, 30),
    "IoU 0.3, 15 anchors a video": Rule(0.3, 4, 15),
    "IoU 0.3, 5 anchors a video": Rule(0.3, 4, 5),
    "IoU 0.3, an anchor a video": Rule(0.3, 4, None, alone=True),
    "IoU 0.5, every frame an anchor": Rule(0.5, 4, None),
    "IoU 0.3, any blur, every frame": Rule(0.3, np.inf, None),
    "IoU 0.3, every frame, 0.5 % errors": Rule(0.3, 4, None, 0.005),
    "IoU 0.3, every frame, 2 % errors": Rule(0.3, 4, None, 0.02),
}


def main() -> None:
    """Prints a line a rule."""
    root = Path(__file__).resolve().parents[1]
    default = os.environ.get("STEADYEYE_TEST_DATA", root.parent / "shared" / "data")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=Path(default))
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    alike = measure(arguments.data)
    print(f"median (worst) of {arguments.seeds} seeds; at most 1 % of all accepted, with 95 %")
    for name, rule in RULES.items():
        values = defaultdict(list)
        for seed in range(arguments.seeds):
            for key, value in review(alike, rule, seed).items():
                values[key].append(value)
        print(row(name, values), flush=True)


def row(name: str, values: Mapping[str, Sequence[float]]) -> str:
    """A line: the median and the worst of the seeds."""
    middle = {key: float(np.median(column)) for key, column in values.items()}
    broken = float(np.mean([share > MOST for share in values["wrong_all"]]))
    none = float(np.mean([not count for count in values["bulk"]]))
    return (
        f"{name:35s} similar {middle['similar']:.1%}, pairs {middle['pairs']:,.0f} "
        f"(twins {middle['twins']:,.0f}), asked {middle['asked']:,.0f} ({max(values['asked']):,}), "
        f"saved {middle['saved']:.2f}x ({min(values['saved']):.2f}x), bulk {middle['bulk']:,.0f}, "
        f"wrong of bulk {middle['wrong_bulk']:.2%} ({max(values['wrong_bulk']):.2%}), "
        f"of all {middle['wrong_all']:.2%} ({max(values['wrong_all']):.2%}), "
        f"lost {middle['lost']:.2%} ({max(values['lost']):.2%}), "
        f"broken {broken:.0%}, all asked {none:.0%}"
    )


if __name__ == "__main__":
    main()
