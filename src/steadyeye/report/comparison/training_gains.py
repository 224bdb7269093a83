"""What a model has before and after, and by how much they differ, paired."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steadyeye.core.errors import list_texts
from steadyeye.core.format import format_value, points, probability, span
from steadyeye.core.report_types import Figure, Table
from steadyeye.core.stats.intervals import proportion
from steadyeye.core.stats.multiple_testing import holm
from steadyeye.core.stats.paired import Difference, difference, prepare_outcomes
from steadyeye.core.stats.trials import Outcomes, Trials
from steadyeye.core.types import Result
from steadyeye.report.charts.style import chart, colour, rows_of, shares
from steadyeye.report.comparison.ranking import ALPHA

ROW = 56
POINTS = "percentage points"
CAPTION = "Before and after training, with 95 % intervals."
IN_POINTS = " The drop is in percentage points."
STILL = 0.01
"""A change is called unchanged where its whole interval lies within this share of none."""
READING = (
    "A change is clear if p ≤ 0.05, adjusted by Holm for the number of metrics. No clear change "
    "does not mean no change. Unchanged: the whole interval is within ±1 percentage point."
)


@dataclass(frozen=True)
class Gain:
    """A number before and after. `difference`: after − before; None where either has none.

    `adjusted`: its p value where several numbers are compared, as `adjust_gains` makes it.
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
class TrainingGains:
    """A step with its gains, the models' names as they are shown."""

    before: str
    after: str
    gains: tuple[Gain, ...]


def gain(what: str, before: Outcomes, after: Outcomes) -> Gain:
    """The gain of outcomes on the same samples, with the interval of each."""
    return Gain(what, result(what, before), result(what, after), pair_difference(before, after))


def adjust_gains(found: Sequence[Gain]) -> tuple[Gain, ...]:
    """The gains of one comparison, their p values adjusted by Holm for how many there are."""
    p = holm([np.nan if each.difference is None else each.difference.p for each in found])
    return tuple(
        each if each.difference is None else replace(each, adjusted=float(value))
        for each, value in zip(found, p, strict=True)
    )


def pair_difference(before: Outcomes, after: Outcomes) -> Difference | None:
    """After − before, on the same samples."""
    return difference(prepare_outcomes(after), prepare_outcomes(before))


def result(what: str, outcomes: Outcomes) -> Result:
    """A number with its own interval."""
    if isinstance(outcomes, Trials):
        found = proportion(outcomes.success, outcomes.videos)
        return Result(what, found.value, found.low, found.high, found.n, found.method)
    n, value = len(outcomes.videos), outcomes.value
    if np.isnan(value):
        return Result(what, None, None, None, n, "none: n = 0")
    found = outcomes.interval()
    return Result(what, value, found.low, found.high, n, found.method)


def change(found: Gain) -> str:
    """The change in a word or two: `accuracy +13.0 pp`, `drop unchanged`."""
    if found.difference is None:
        return f"{found.what} unknown"
    if not _may_differ(found):
        return f"{found.what} unchanged"
    return f"{found.what} {points(found.difference.value)} pp"


def changes(found: Sequence[Gain]) -> str:
    """The changes of several numbers; those that are not clear are named last."""
    open_ones = [each.what for each in found if not each.apart and _may_differ(each)]
    said = [change(each) for each in found if each.what not in open_ones]
    if open_ones:
        said.append(f"no clear change in {list_texts(open_ones)}")
    return ", ".join(said)


def _may_differ(found: Gain) -> bool:
    """Whether the interval of a change reaches beyond what is called unchanged."""
    gap = found.difference
    return gap is not None and max(abs(gap.low), abs(gap.high)) > STILL


def amount(found: Gain) -> str:
    """The change with its interval: `+13.0 percentage points (+4.1 to +20.9)`."""
    if found.difference is None:
        return "unknown"
    gap = found.difference
    return f"{points(gap.value)} percentage points ({points(gap.low)} to {points(gap.high)})"


def share(value: float | None) -> str:
    """A share as a percentage; a drop may be below 0."""
    return format_value(value, "share").replace("-", "−")


def value_of(found: Result, points: str = "pp") -> str:
    """A number in its unit: a share as a percentage, a drop in percentage points.

    `points`: how the unit of a drop is written, as "pp" in a table.
    """
    return _in_points(share(found.value), points) if _is_drop(found) else share(found.value)


def _is_drop(found: Result) -> bool:
    return found.name.partition(" ")[0] == "drop"


def _in_points(text: str, points: str) -> str:
    return f"{text.removesuffix('%').rstrip()}\u202f{points}" if text.endswith("%") else text


def tables(caption: str, told: Sequence[TrainingGains]) -> tuple[Table, ...]:
    """The numbers before and after; drops, in percentage points, in a table of their own."""
    found = []
    for name, drops in ((caption, False), (f"{caption}: drop (pp)", True)):
        parts = [
            replace(one, gains=tuple(g for g in one.gains if _is_drop(g.before) == drops))
            for one in told
        ]
        if any(part.gains for part in parts):
            found.append(table(name, parts))
    return tuple(found)


def table(caption: str, told: Sequence[TrainingGains]) -> Table:
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
        "metric",
        "before",
        "after",
        "difference (pp)",
        "95 % interval",
        "p (Holm)",
        "verdict",
        "n",
    )
    return Table(caption, (*header, "method"), tuple(rows), open=True)


def numbers(found: Sequence[Gain]) -> str:
    """What each number was and is, and by how much it changed."""
    return "; ".join(
        f"{each.what} {value_of(each.before, POINTS)} before and "
        f"{value_of(each.after, POINTS)} after, {amount(each)}"
        for each in found
    )


def dumbbells(name: str, told: Sequence[TrainingGains]) -> Figure:
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
        f"{each.what}: {value_of(each.before, POINTS)} before, {value_of(each.after, POINTS)} after"
        for one in told
        for each in one.gains
    )
    height = ROW * len({row["number"] for row in values}) + 10
    least = min(0.0, *(row["low"] for row in values if isinstance(row["low"], float)))
    drops = any(_is_drop(each.before) for one in told for each in one.gains)
    spec = {**chart(_layers(least, drops), height), "data": {"values": values}}
    caption = CAPTION + (IN_POINTS if drops else "")
    return Figure(name, caption, f"{sentence}. The table has the intervals.", spec)


def _layers(least: float, drops: bool) -> list[dict[str, Any]]:
    y = rows_of("number")
    aside = {"field": "stage", "type": "nominal", "sort": ["before", "after"]}
    hue = colour(["before", "after"], "stage", "")
    # a drop may be below 0
    x = {**shares("value", ""), "scale": {"domain": [least, 1]}}
    if drops:
        x["axis"] = {"labelExpr": "round(datum.value * 100)"}
        x["title"] = "%; the drop in percentage points"
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
    return f"{value_of(found)} ({_in_points(ends, 'pp') if _is_drop(found) else ends})"


def _difference(found: Gain) -> tuple[str, ...]:
    gap, n = found.difference, f"{found.after.n:,}"
    if gap is None:
        return "—", "—", "—", "unknown", n, "—"
    verdict = "clear" if found.apart else "not clear"
    ends = f"{points(gap.low)} to {points(gap.high)}"
    p = gap.p if found.p is None else found.p
    return points(gap.value), ends, probability(p), verdict, n, gap.method
