"""How much of what detections rest on lies inside their boxes: numbers and table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import interval, percent, points
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Table
from steadyeye.core.stats.intervals import Interval
from steadyeye.explain.attributions import Attribution
from steadyeye.explain.effects import ProbeEffects, difference, mean
from steadyeye.explain.target_matching import match_targets

CONTROL = "correct detections (control)"


@dataclass(frozen=True, eq=False)
class InsideShares:
    """A model with the attributions of its targets; those without any map are left out, counted.

    `effects`: the shares inside the box as effects of the probe.
    """

    predictions: Predictions
    found: tuple[Attribution, ...]
    effects: ProbeEffects

    @property
    def model(self) -> str:
        """The detector."""
        return str(self.predictions.probe["model"])

    @property
    def area(self) -> NDArray[np.float64]:
        """(m,) the area of each box as a share of its image."""
        return np.array([each.area for each in self.found])

    @property
    def even(self) -> NDArray[np.float64]:
        """(m,) the share that resting on the box alone would have, by the same masks."""
        return np.array([each.even for each in self.found])

    @property
    def beyond(self) -> ProbeEffects:
        """The shares less the areas: what a map all alike would not explain."""
        change = self.effects.change - self.area
        return replace(self.effects, change=change, bounds=(-1.0, 1.0))


def measure_inside_shares(
    predictions: Predictions, attributions: Sequence[Attribution]
) -> InsideShares:
    """The attributions of a model, those that have any."""
    found = tuple(each for each in attributions if np.isfinite(each.share))
    rows = np.array([each.row for each in found], dtype=np.intp)
    cause = np.array([each.cause for each in found], dtype=np.str_)
    video = np.array([each.video for each in found], dtype=np.str_)
    image = np.array([each.image for each in found], dtype=np.str_)
    # the control's images are others, even where they are called the same
    apart = (cause == "") & (predictions.probe.get("reference") is not None)
    effects = ProbeEffects(
        plain=rows,
        changed=(),
        change=np.array([each.share for each in found]),
        vanished=np.array([each.gone for each in found]),
        kept=np.full(len(found), np.nan),
        cause=cause,
        label=np.asarray(predictions.tags["own_label"])[rows],
        cluster=np.char.add(np.where(apart, "control/", ""), video),
        of="images" if np.array_equal(video, image) else "videos",
        lost=len(set(_targets(predictions))) - len(found),
        found=match_targets(predictions),
    )
    return InsideShares(predictions, found, effects)


def cell(found: Interval) -> str:
    """A share with its interval, `41.0 % (30.2–52.8 %)`."""
    return f"{percent(found.value)} ({interval(found.low, found.high)})"


def apart(found: Interval) -> str:
    """A difference in percentage points with its interval, `−12.0 (−20.1 to −4.0)`."""
    if found.low is None or found.high is None:
        return f"{points(found.value)} (—)"
    return f"{points(found.value)} ({points(found.low)} to {points(found.high)})"


def table(one: InsideShares) -> Table:
    """Mistakes, each of their causes, and the control: share inside, area, and the one less."""
    effects = one.effects
    body = []
    for name, which in groups(effects):
        inside = mean(effects, which)
        body.append(
            (
                name,
                f"{inside.n:,}",
                f"{len(np.unique(effects.cluster[which])):,}",
                cell(inside),
                cell(mean(effects, which, one.area)),
                percent(mean(effects, which, one.even).value),
                apart(mean(one.beyond, which)),
                inside.method,
            )
        )
    both = difference(effects)
    cells = ("mistakes − correct detections (pp)", f"{both.n:,}", "—", apart(both), "—", "—")
    body.append((*cells, apart(difference(one.beyond)), both.method))
    header = (
        "",
        "n",
        effects.of,
        "inside the box",
        "uniform map",
        "box only",
        "inside − uniform (pp)",
    )
    caption = f"{one.model}: share of Σ|attribution| inside the box"
    return Table(caption, (*header, "interval"), tuple(body), open=True)


def groups(effects: ProbeEffects) -> list[tuple[str, NDArray[np.bool_]]]:
    """Mistakes together, each of their causes where there are several, and the control."""
    causes = sorted(set(effects.cause.tolist()) - {""})
    rows = [("mistakes", effects.mistake)] if len(causes) != 1 else []
    rows += [(cause, effects.cause == cause) for cause in causes]
    return [*rows, (CONTROL, ~effects.mistake)]


def _targets(predictions: Predictions) -> list[tuple[str, str]]:
    tags = predictions.tags
    return list(zip(tags["cause"].tolist(), tags["target"].tolist(), strict=True))
