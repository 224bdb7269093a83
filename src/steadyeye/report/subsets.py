"""Accuracy, pm-k and drop on parts of the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from steadyeye.core.format import format_unsigned_points, interval, percent
from steadyeye.core.pm_sets import PmSets, farthest, pm_sets
from steadyeye.core.report_types import Figure, Table
from steadyeye.core.result_lookup import find, read_k
from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.core.storage.text_files import read_shipped
from steadyeye.core.types import Evaluated
from steadyeye.metrics.testbed.published_models import TITLES, why_not
from steadyeye.report.charts.specs import (
    BELOW,
    PALETTE,
    SCHEMA,
    choose_drawn,
    describe_omitted,
    dot,
    layer,
    map_names,
    shares,
)


@dataclass(frozen=True)
class Loss:
    """Accuracy, pm-k and drop of a model on a `part` of the data, over the same anchors."""

    model: str
    part: str
    original: Interval
    perturbed: Interval
    drop: Interval
    published: bool = False


def distance(model: Evaluated, sets: PmSets, metric: str = "pm_k") -> int:
    """The k of the run's metric, or the largest in the data."""
    result = find(model.results, metric)
    return farthest(sets, read_k(result) if result else None)


def loss(model: str, part: str, sets: PmSets, k: int) -> Loss:
    """The numbers over some sets; the drop is a share and has the interval of a share."""
    return Loss(
        model,
        part,
        proportion(sets.breaks_at > 0, sets.videos),
        proportion(sets.breaks_at > k, sets.videos),
        proportion((sets.breaks_at > 0) & (sets.breaks_at <= k), sets.videos),
    )


@dataclass(frozen=True)
class PublishedLosses:
    """The numbers of a published table of percentages.

    `part`: the column of the part, `parts`: our names for them; `n`: the column of the number of
    anchors, '' if it is not printed. `source`: the sentence on them in a caption.
    """

    path: Path
    part: str
    parts: Mapping[str, str]
    n: str
    source: str

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """The numbers in the order of the table.

        The drop is the difference of the printed accuracies: a printed drop may be off by a
        rounding.
        """
        return tuple(
            _row(row, self.parts.get(row[self.part], row[self.part]), self.n)
            for row in read_shipped(self.path)
        )


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
    model = f"published, {TITLES.get(row['dataset'], row['dataset'])}"
    return Loss(
        model, part, original, perturbed, Interval(drop, None, None, anchors, "published"), True
    )


def show_losses(
    model: Evaluated,
    losses: Sequence[Loss],
    published: PublishedLosses,
    name: str,
    texts: tuple[str, str],
) -> tuple[Figure, Table]:
    """The figure `name` and the table of numbers, with published ones if these apply.

    `model`: the model whose data and k the published numbers must match. `texts`: the caption of
    the figure, to which the source or the reason for its absence is added, and the first heading of
    the table.
    """
    caption, heading = texts
    why = why_not(model.predictions, distance(model, pm_sets(model.predictions)))
    source = f"Published values are not shown. {why}" if why else published.source
    rows = [*losses, *(() if why else published.losses)]
    return figure(name, rows, f"{caption} {source}"), table(rows, heading)


MUTED = ("#8a8a8a", "#b08d57")  # of published models
ENDS = ("accuracy", "pm-k")


def table(losses: Sequence[Loss], part: str) -> Table:
    """All numbers, grouped by part; `part` is the name of the first column."""
    parts = list(dict.fromkeys(loss.part for loss in losses))
    body = tuple(
        (
            loss.part,
            loss.model,
            f"{loss.original.n:,}" if loss.original.n else "—",
            cell(loss.original),
            cell(loss.perturbed),
            _drop(loss.drop),
        )
        for loss in sorted(losses, key=lambda loss: parts.index(loss.part))
    )
    header = (part, "model", "anchors", "accuracy", "pm-k", "drop (pp)")
    return Table("Accuracy, pm-k and drop with 95 % intervals", header, body)


def cell(estimate: Interval) -> str:
    """A share, with its interval if it has one."""
    share = percent(estimate.value)
    return share if estimate.low is None else f"{share} ({interval(estimate.low, estimate.high)})"


def _drop(drop: Interval) -> str:
    """A drop in percentage points, with its interval if it has one."""
    value, low, high = map(format_unsigned_points, (drop.value, drop.low, drop.high))
    return value if drop.low is None else f"{value} ({low}–{high})"


def figure(name: str, losses: Sequence[Loss], caption: str) -> Figure:
    """Bars from pm-k to accuracy, one per part and model; published ones in muted colours."""
    accuracies = {loss.model: loss.original.value for loss in losses if not loss.published}
    models = choose_drawn(accuracies)
    others = list(dict.fromkeys(loss.model for loss in losses if loss.published))
    names = [*models, *others]
    values = [_datum(loss) for loss in losses if loss.model in names]
    parts = list(dict.fromkeys(loss.part for loss in losses))
    return Figure(
        name=name,
        caption=caption + describe_omitted(accuracies),
        alt=f"Accuracy and pm-k of {', '.join(names)} on {', '.join(parts)}; see the table.",
        spec={
            "$schema": SCHEMA,
            "width": "container",
            "height": (16 * len(names) + 12) * len(parts),
            "data": {"values": [value for value in values if value["accuracy"] is not None]},
            "layer": _layers(names, [*PALETTE[: len(models)], *MUTED[: len(others)]], parts),
        },
    )


def _datum(loss: Loss) -> dict[str, Any]:
    return {
        "part": loss.part,
        "model": loss.model,
        "anchors": loss.original.n,
        "accuracy": loss.original.value,
        "pm-k": loss.perturbed.value,
        "accuracy_low": loss.original.low,
        "accuracy_high": loss.original.high,
        "pm-k_low": loss.perturbed.low,
        "pm-k_high": loss.perturbed.high,
    }


def _layers(names: list[str], colours: list[str], parts: list[str]) -> list[dict[str, Any]]:
    channels = {
        "y": {"field": "part", "type": "nominal", "title": None, "sort": parts},
        "yOffset": {"field": "model", "type": "nominal", "sort": names},
        "color": map_names("model", names, colours, BELOW),
    }
    title = "share of anchors: pm-k ○ to accuracy ●"

    def span(low: str, high: str, **mark: Any) -> dict[str, Any]:
        return layer("rule", {**channels, "x": shares(low, title), "x2": {"field": high}}, **mark)

    def point(field: str, filled: bool) -> dict[str, Any]:
        tips = [{"field": name} for name in ("model", "part", "anchors")]
        tips += [{"field": name, "format": ".1%"} for name in ENDS]
        place = {**channels, "x": shares(field, title), "tooltip": tips}
        return dot(place, filled=filled, tooltip=True)

    return [
        *(span(f"{end}_low", f"{end}_high", strokeWidth=1, opacity=0.6) for end in ENDS),
        span("pm-k", "accuracy", strokeWidth=3),
        point("accuracy", True),
        point("pm-k", False),
    ]
