"""How far neighbours are from their anchors in ℓ∞, and how far those that break."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import format_share, number_of, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.stats.intervals import proportion
from steadyeye.core.types import Evaluated, needs
from steadyeye.metrics.covariates.breakage import (
    STEPS,
    Distribution,
    clusters_of,
    distribution,
    outcomes,
)
from steadyeye.report.charts.specs import chart, layer, lines, quantity, shares

CUSTOMARY = 8 / 255  # the radius that adversarial training on natural images mostly promises
FEW = 0.05
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)

Series = dict[str, tuple[Distribution, float]]
"""What is counted → its distribution and smallest distance."""


@needs("group", "offset", "linf")
def linf_distances(evaluated: Sequence[Evaluated]) -> Section | None:
    """The ℓ∞ distances of all pairs, of accepted pairs, and of the pairs that break each model.

    A model's breaks are the neighbours it gets wrong while their anchor is right. None without a
    measured pair. Shankar et al., Figure 10.
    """
    first = evaluated[0].predictions
    pairs = np.flatnonzero((first.tags["offset"] != 0) & np.isfinite(first.tags["linf"]))
    if not len(pairs):
        return None
    series = _series([model.predictions for model in evaluated], pairs)
    every = series["all pairs"][0]
    half, low, high = every.quantile(0.5)
    return Section(
        topic=Topic.SURE,
        place=60,
        title=f"ℓ∞ distance to the anchor: half of {number_of(every.n, 'neighbour')} are within "
        f"{half:.2f} ({_range(low, high)})",
        text=(_far(first, pairs, every), *_smallest(series)),
        tables=(_table(series),),
        figures=(_figure(series),),
    )


def _series(tables: Sequence[Predictions], pairs: NDArray[np.intp]) -> Series:
    first = tables[0]
    clusters, _ = clusters_of(first, pairs)
    series = {"all pairs": _of(first, pairs, clusters)}
    if "accepted" in first.tags:
        accepted = np.asarray(first.tags["accepted"][pairs]).astype(np.bool_)
        if accepted.any():
            series["accepted pairs"] = _of(first, pairs[accepted], clusters[accepted])
    for table in tables:
        if "truth" not in table.columns:
            continue
        judged = outcomes(table)
        broken = judged.broken & np.isfinite(table.tags["linf"][judged.rows])
        if broken.any():
            name = f"breaks of {table.model}"
            series[name] = _of(table, judged.rows[broken], judged.clusters[broken])
    return series


def _of(
    predictions: Predictions, rows: NDArray[np.intp], clusters: NDArray[np.str_]
) -> tuple[Distribution, float]:
    distances = np.asarray(predictions.tags["linf"][rows], dtype=np.float64)
    return distribution(distances, clusters), float(distances.min())


def _far(predictions: Predictions, pairs: NDArray[np.intp], every: Distribution) -> str:
    clusters, within = clusters_of(predictions, pairs)
    half, low, high = every.quantile(0.5)
    near = proportion(predictions.tags["linf"][pairs] <= CUSTOMARY + 1e-9, clusters)
    text = (
        f"Half of {number_of(every.n, 'neighbour')} are within {half:.2f} of their anchor in ℓ∞ "
        f"({_range(low, high)}{f', {within}' if within else ''}), for pixels in 0…1 at the decoded "
        f"size. {format_share(near)} are within 8/255 = 0.03, "
        "the usual radius of adversarial training."
    )
    if near.high is None or near.high > FEW:
        return text
    return (
        f"{text} Robustness within that radius says nothing about nearly all of these neighbours."
    )


def _smallest(series: Series) -> tuple[str, ...]:
    breaks = {name: curve for name, curve in series.items() if name.startswith("breaks")}
    if not breaks:
        return ()
    name = min(breaks, key=lambda series_name: breaks[series_name][1])
    medians = "; ".join(
        f"{curve.removeprefix('breaks of ')} {of.quantile(0.5)[0]:.2f} (n = {of.n:,})"
        for curve, (of, _) in breaks.items()
    )
    return (
        f"The smallest distance at which a model breaks is {breaks[name][1]:.3f} "
        f"({name.removeprefix('breaks of ')}). Median distance of the neighbours that break a "
        f"set: {medians}.",
    )


def _table(series: Series) -> Table:
    rows = tuple(
        (name, f"{of.n:,}", f"{least:.3f}", *(_cell(of, share) for share in QUANTILES))
        for name, (of, least) in series.items()
    )
    header = ("pairs", "n", "smallest", *(f"{percent(share, 0)} within" for share in QUANTILES))
    return Table("ℓ∞ distance to the anchor, pixels in 0…1, with 95 % intervals", header, rows)


def _cell(of: Distribution, share: float) -> str:
    value, low, high = of.quantile(share)
    return f"{value:.2f} ({_range(low, high)})"


def _range(low: float | None, high: float | None) -> str:
    return "no interval" if low is None or high is None else f"{low:.2f}–{high:.2f}"


def _figure(series: Series) -> Figure:
    values = [
        {"pairs": name, "distance": i / 255, "share": round(float(of.within[i]), 5)}
        for name, (of, _) in series.items()
        for i in range(0, STEPS, 3)
    ]
    x = quantity("distance", "ℓ∞ distance to the anchor", scale={"domain": [0, 1]})
    names = list(series)
    encoding = {"x": x, "y": shares("share", "share of pairs within"), **lines(names, "pairs")}
    layers = [
        layer("rule", {"x": x}, [{"distance": CUSTOMARY}], strokeDash=[4, 4], color="#888"),
        layer("line", encoding, values),
    ]
    return Figure(
        name="linf_distances",
        caption="Share of pairs within an ℓ∞ distance; dashed: 8/255.",
        alt="Shares of pairs within an ℓ∞ distance, of all pairs and of those that break a model",
        spec=chart(layers),
    )
