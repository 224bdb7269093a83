"""What a model has before and after, and by how much they differ, paired."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steadyeye.charts.style import (
    chart,
    colour,
    points,
    probability,
    rows_of,
    shares,
    shown,
    span,
)
from steadyeye.comparison.order import ALPHA
from steadyeye.comparison.paired import Difference, difference, drawn
from steadyeye.core.intervals import proportion
from steadyeye.core.multiplicity import holm
from steadyeye.core.outcomes import Outcomes, Trials
from steadyeye.core.sections import Figure, Table
from steadyeye.core.types import Result

ROW = 56
CAPTION = "Before and after, each with its 95 % interval. The dashed line joins the two."
STILL = 0.01
"""A change is called unchanged where its whole interval lies within this share of none."""
READING = (
    "A change with a question mark is not shown at p ≤ 0.05, after Holm's allowance for the "
    "numbers of a comparison, which does not say that there is none; unchanged is one whose whole "
    "interval lies within a point of none."
)


@dataclass(frozen=True)
class Gain:
    """A number before and after. `difference`: after − before; None where either has none.

    `adjusted`: its p value where several numbers are compared, as `allowed` makes it.
    """

    what: str
    before: Result
    after: Result
    difference: Difference | None
    adjusted: float | None = None

    @property
    def p(self) -> float | None:
        """The p value that counts: after the allowance for several numbers, where there is one."""
        if self.difference is None or self.adjusted is not None:
            return self.adjusted
        return self.difference.p

    @property
    def apart(self) -> bool:
        """Whether a difference is shown."""
        return self.p is not None and self.p <= ALPHA


@dataclass(frozen=True)
class Told:
    """A step with its gains, the models' names as they are shown."""

    before: str
    after: str
    gains: tuple[Gain, ...]


def gain(what: str, before: Outcomes, after: Outcomes) -> Gain:
    """The gain of outcomes on the same samples, with the interval of each."""
    return Gain(what, result(what, before), result(what, after), paired(before, after))


def allowed(found: Sequence[Gain]) -> tuple[Gain, ...]:
    """The gains of one comparison, their p values adjusted by Holm for how many there are."""
    p = holm([np.nan if each.difference is None else each.difference.p for each in found])
    return tuple(
        each if each.difference is None else replace(each, adjusted=float(value))
        for each, value in zip(found, p, strict=True)
    )


def paired(before: Outcomes, after: Outcomes) -> Difference | None:
    """After − before, on the same samples."""
    return difference(drawn(after), drawn(before))


def result(what: str, outcomes: Outcomes) -> Result:
    """A number with its own interval."""
    if isinstance(outcomes, Trials):
        found = proportion(outcomes.success, outcomes.videos)
        return Result(what, found.value, found.low, found.high, found.n, found.method)
    n, value = len(outcomes.videos), outcomes.value
    if np.isnan(value):
        return Result(what, None, None, None, n, "none: there is nothing to count")
    found = outcomes.interval()
    return Result(what, value, found.low, found.high, n, found.method)


def change(found: Gain) -> str:
    """The change in a word or two: `accuracy +13.0`, `drop unchanged`, `pm-10 +4.0?`."""
    if found.difference is None:
        return f"{found.what} not known"
    if max(abs(found.difference.low), abs(found.difference.high)) <= STILL:
        return f"{found.what} unchanged"
    return f"{found.what} {points(found.difference.value)}{'' if found.apart else '?'}"


def changes(found: Sequence[Gain]) -> str:
    """The changes of several numbers."""
    return ", ".join(map(change, found))


def amount(found: Gain) -> str:
    """The change with its interval: `+13.0 points (4.1 to 20.9)`."""
    if found.difference is None:
        return "not known"
    gap = found.difference
    return f"{points(gap.value)} points ({points(gap.low)} to {points(gap.high)})"


def share(value: float | None) -> str:
    """A share as a percentage; a drop may be below 0."""
    return shown(value, "share").replace("-", "−")


def table(caption: str, told: Sequence[Told]) -> Table:
    """Every number before and after and their difference, all with intervals."""
    several = len(told) > 1
    rows = [
        (
            f"{each.what}, {one.after} after {one.before}" if several else each.what,
            _cell(each.before),
            _cell(each.after),
            *_difference(each),
        )
        for one in told
        for each in one.gains
    ]
    header = (
        "number",
        "before",
        "after",
        "difference, points",
        "95 % interval",
        "p, Holm",
        "",
        "n",
    )
    return Table(caption, (*header, "method"), tuple(rows), open=True)


def numbers(found: Sequence[Gain]) -> str:
    """What each number was and is, and by how much it changed."""
    return "; ".join(
        f"{each.what} {share(each.before.value)} before and {share(each.after.value)} after, "
        f"{amount(each)}"
        for each in found
    )


def dumbbells(name: str, told: Sequence[Told]) -> Figure:
    """Before and after of every number, joined, each with its interval."""
    several = len(told) > 1
    values = [
        {
            "number": f"{each.what}\n{one.after} after {one.before}" if several else each.what,
            "stage": stage,
            "model": one.before if stage == "before" else one.after,
            "value": found.value,
            "low": found.low,
            "high": found.high,
        }
        for one in told
        for each in one.gains
        for stage, found in (("before", each.before), ("after", each.after))
        if found.value is not None
    ]
    sentence = "; ".join(
        f"{each.what}: {share(each.before.value)} before, {share(each.after.value)} after"
        for one in told
        for each in one.gains
    )
    height = ROW * len({row["number"] for row in values}) + 10
    least = min(0.0, *(row["low"] for row in values if isinstance(row["low"], float)))
    spec = {**chart(_layers(least), height), "data": {"values": values}}
    return Figure(name, CAPTION, f"{sentence}. The table has the intervals.", spec)


def _layers(least: float) -> list[dict[str, Any]]:
    y = rows_of("number")
    aside = {"field": "stage", "type": "nominal", "sort": ["before", "after"]}
    hue = colour(["before", "after"], "stage", "")
    # a drop may be below 0
    x = {**shares("value", ""), "scale": {"domain": [least, 1]}}
    joined = {
        "mark": {"type": "line", "strokeWidth": 1, "strokeDash": [3, 3], "color": "#8a8a8a"},
        "encoding": {"y": y, "x": x, "detail": {"field": "number"}, "yOffset": aside},
    }
    line = {
        "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.6},
        "encoding": {
            **{"y": y, "yOffset": aside, "color": hue},
            **{"x": {**x, "field": "low"}, "x2": {"field": "high"}},
        },
    }
    told = [{"field": "model"}, {"field": "value", "format": ".1%"}]
    told += [{"field": end, "format": ".1%"} for end in ("low", "high")]
    dot = {
        "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
        "encoding": {"y": y, "yOffset": aside, "color": hue, "x": x, "tooltip": told},
    }
    return [joined, line, dot]


def _cell(found: Result) -> str:
    ends = span(found.low, found.high, "share").replace("-", "−")
    return f"{share(found.value)} ({ends})"


def _difference(found: Gain) -> tuple[str, ...]:
    gap, n = found.difference, f"{found.after.n:,}"
    if gap is None:
        return "—", "—", "—", "not known", n, "—"
    verdict = "shown" if found.apart else "not shown"
    ends = f"{points(gap.low)} to {points(gap.high)}"
    p = gap.p if found.p is None else found.p
    return points(gap.value), ends, probability(p), verdict, n, gap.method
