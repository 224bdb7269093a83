"""Which model stands degradation best."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.charts.style import interval, percent
from steadyeye.core import bootstrap
from steadyeye.core.sections import Section, Table
from steadyeye.core.types import Evaluated, needs
from steadyeye.degradation.profiles import profiles


@dataclass(frozen=True, eq=False)
class _Standing:
    """A model's accuracy over all operators and levels; `replicates`: (r,) of the bootstrap."""

    model: str
    plain: float
    overall: float
    kept: float
    replicates: NDArray[np.float64]


@needs("truth", "operator", "level", "profile")
def degradation_ranking(evaluated: Sequence[Evaluated]) -> Section | None:
    """Models by their accuracy over all operators and levels, on all images alike.

    Two neighbours share a rank unless the paired bootstrap over images (or videos) tells them
    apart at 95 %. None for a single model, or where models saw other operators or images.
    """
    if len(evaluated) < 2 or len({one.predictions.fingerprint for one in evaluated}) > 1:
        return None
    standings = sorted(map(_standing, evaluated), key=lambda each: -each.overall)
    rows = []
    rank = 1
    for place, each in enumerate(standings, start=1):
        if place > 1 and _apart(standings[place - 2], each):
            rank = place
        low, high = bootstrap.ends(each.replicates)
        overall = f"{percent(each.overall)} ({interval(low, high)})"
        rows.append((f"{rank}", each.model, overall, percent(each.kept), percent(each.plain)))
    header = ("rank", "model", "degraded accuracy, all images", "of what it had right", "level 0")
    return Section(
        place=12,
        title="Which model stands it best",
        text=(
            "Ranked by accuracy over all operators and levels, every image counted for every "
            "model. A rank is shared where the data cannot tell two neighbours apart (paired "
            "bootstrap, 95 %).",
        ),
        tables=(Table("Robustness ranking", header, tuple(rows)),),
    )


def _standing(one: Evaluated) -> _Standing:
    found = profiles(one.predictions, images="all")
    right = one.predictions.right
    curves = [right[rows].astype(np.float32) for _, _, rows in found.curves()]
    each = np.mean([curve[1:].mean(axis=0) for curve in curves], axis=0)
    plain = curves[0][0]
    return _Standing(
        model=one.predictions.model,
        plain=float(plain.mean()),
        overall=float(each.mean()),
        kept=float(each[plain > 0].mean()),
        replicates=bootstrap.means(each, bootstrap.weights(found.videos)),
    )


def _apart(better: _Standing, worse: _Standing) -> bool:
    # the weights are seeded, so both were drawn on the same images: the difference is paired
    return bootstrap.ends(better.replicates - worse.replicates)[0] > 0
