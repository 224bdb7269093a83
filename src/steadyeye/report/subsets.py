"""What neighbours take away from a model on a part of the data."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steadyeye.core.pm_sets import PmSets, farthest
from steadyeye.core.result_lookup import find, read_k
from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.core.types import Evaluated

SETS = {"imagenet_vid_robust": "ImageNet-Vid-Robust", "ytbb_robust": "YTBB-Robust"}


@dataclass(frozen=True)
class Loss:
    """Accuracy, pm-k and drop of a model on a `part` of the data, over the same anchors."""

    model: str
    part: str
    original: Interval
    perturbed: Interval
    drop: Interval
    published: bool = False


def distance(one: Evaluated, sets: PmSets) -> int:
    """The k that the run asked for, or the largest in the data."""
    asked = find(one.results, "pm_k")
    return farthest(sets, read_k(asked) if asked else None)


def loss(model: str, part: str, sets: PmSets, k: int) -> Loss:
    """The loss over some sets; the drop is a share itself and has a share's interval."""
    return Loss(
        model,
        part,
        proportion(sets.breaks_at > 0, sets.videos),
        proportion(sets.breaks_at > k, sets.videos),
        proportion((sets.breaks_at > 0) & (sets.breaks_at <= k), sets.videos),
    )


def read_published_losses(
    path: Path, part: str, parts: Mapping[str, str], n: str
) -> tuple[Loss, ...]:
    """The losses of a published table of percentages, in its order.

    `part`: the column that holds the part, `parts` what ours is called; `n`: the column of the
    number of anchors, '' where it is not printed. The drop is the difference of the printed
    accuracies: a printed drop may be off by a rounding.
    """
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(_row(row, parts.get(row[part], row[part]), n) for row in csv.DictReader(file))


def _row(row: Mapping[str, str], part: str, n: str) -> Loss:
    anchors = int(row[n]) if n else 0

    def share(column: str) -> Interval:
        low, high = (
            float(text) / 100 if (text := row.get(f"{column}_{end}")) else None
            for end in ("low", "high")
        )
        return Interval(float(row[column]) / 100, low, high, anchors, "published")

    original, perturbed = share("original"), share("perturbed")
    drop = round((original.value or 0.0) - (perturbed.value or 0.0), 6)
    model = f"published, {SETS.get(row['dataset'], row['dataset'])}"
    return Loss(
        model, part, original, perturbed, Interval(drop, None, None, anchors, "published"), True
    )
