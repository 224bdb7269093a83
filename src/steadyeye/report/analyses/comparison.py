"""Compares several models, with clear differences only."""

from collections.abc import Sequence
from typing import Any

from steadyeye.core.format import number_of, probability
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.result_lookup import among
from steadyeye.core.types import Evaluated, needs
from steadyeye.report.charts.specs import (
    PALETTE,
    chart,
    dot,
    fields_of,
    layer,
    map_names,
    rows_of,
)
from steadyeye.report.comparison.leaderboards import (
    Boards,
    Leaderboard,
    boards,
    claim,
    finding,
    headline,
    rank,
)
from steadyeye.report.comparison.metric_wording import amount, format_ends, name_metric
from steadyeye.report.render.document import interval_of, value_of

DRAWN = 30
ROW = 44
SHOWN = {True: "clear difference", False: "no clear difference"}


@needs()
def comparison(evaluated: Sequence[Evaluated]) -> Section | None:
    """Models on the same samples: ranks for clear differences only, and all paired differences.

    None for a single model, and if the models have different samples.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_predictions
        >>> tables = example_predictions(margin=0.5), example_predictions(margin=0.8)
        >>> models = example_models(*tables)
        >>> print(comparison(models).title)
        Do the two models differ in pm-2? No clear difference
    """
    compared = boards(evaluated)
    if compared is None:
        return None
    first = compared.boards[0]
    return Section(
        topic=Topic.COMPARED,
        place=3,
        title=headline(first),
        claim=claim(first),
        text=(finding(first), *_caveats(compared)),
        method=(_meaning(compared),),
        tables=(_standings(compared), _differences(compared)),
        figures=(_figure(first),),
    )


def _meaning(compared: Boards) -> str:
    several = len(compared.boards[0].standings) > 2
    return (
        "All models are compared on the same samples. A difference is how much better the first "
        "model of a pair is than the second, also where lower is better; below 0 it is worse. A "
        "difference is clear if p ≤ 0.05"
        + (", adjusted by Holm for the number of pairs per metric" if several else "")
        + ". Rank = 1 + the number of models that are clearly better. No clear difference does "
        "not mean no difference."
    )


def _caveats(compared: Boards) -> tuple[str, ...]:
    lines = list(compared.unlike)
    for board in compared.boards:
        if board.open_triple:
            first, middle, last = board.open_triple
            lines.append(
                f"On {name_metric(board.metric)} {first} is clearly better than {last}, but there "
                f"is no clear difference between either of them and {middle}."
            )
            break
    if compared.one_video:
        lines.append("These results hold within this one video only.")
    if compared.left_out:
        lines.append(
            f"{number_of(compared.left_out, 'sample')} left out of this comparison: no "
            "prediction from every model."
        )
    return tuple(lines)


def _standings(compared: Boards) -> Table:
    rows = [
        (
            name_metric(board.metric),
            rank(board, place),
            standing.model,
            value_of(standing.result),
            interval_of(standing.result),
            f"{standing.result.n:,}",
            among(standing.result),
            ", ".join(standing.tied) or "—",
        )
        for board in compared.boards
        for place, standing in enumerate(board.standings)
    ]
    header = (
        "metric",
        "rank",
        "model",
        "value",
        "95 % interval",
        "n",
        "classes",
        "no clear difference from",
    )
    return Table("Ranking", header, tuple(rows), open=True)


def _differences(compared: Boards) -> Table:
    rows = [
        (
            name_metric(board.metric) + (" (lower is better)" if board.lower else ""),
            f"{pair.better} over {pair.worse}",
            amount(pair.difference.value, board.unit, brief=True),
            format_ends(pair.difference.low, pair.difference.high, board.unit),
            probability(pair.difference.p),
            probability(pair.adjusted),
            "yes" if pair.is_clear else "no",
            pair.difference.method,
        )
        for board in compared.boards
        for pair in board.pairs
    ]
    header = (
        "metric",
        "pair",
        "difference",
        "95 % interval",
        "p",
        "p (Holm)",
        "clear",
        "method",
    )
    return Table("Paired differences", header, tuple(rows))


def _figure(board: Leaderboard) -> Figure:
    pairs, name = board.pairs[:DRAWN], name_metric(board.metric)
    values = [
        {
            "pair": f"{pair.better}\nover {pair.worse}",
            **fields_of(pair.difference),
            "told": SHOWN[pair.is_clear],
        }
        for pair in pairs
    ]
    wider = any(not pair.is_clear and pair.difference.low > 0 for pair in pairs)
    caption = f"How much better the first model of a pair is in {name}, with 95 % intervals."
    allowed = " Grey: no clear difference after the Holm adjustment." if wider else ""
    left = (
        f" The first {DRAWN} of {number_of(len(board.pairs), 'pair')}."
        if len(board.pairs) > DRAWN
        else ""
    )
    return Figure(
        name="comparison",
        caption=f"{caption}{allowed}{left}",
        alt=f"{finding(board)} The table has all differences.",
        spec=chart(_layers(name, board.unit), ROW * len(values) + 10, values=values),
    )


def _layers(name: str, unit: str) -> list[dict[str, Any]]:
    """Per pair a line over its interval and a dot at the value, with a line at no difference."""
    y = rows_of("pair")
    ranks = unit == "rank"
    label = "format(datum.value, '~g')" if ranks else "format(datum.value * 100, '~g')"
    x = {
        "type": "quantitative",
        "title": f"difference in {name} ({'ranks' if ranks else 'pp'})",
        "axis": {"labelExpr": label, "tickCount": 5},
    }
    legend = {"title": None, "orient": "bottom"}
    hue = map_names("told", [SHOWN[True], SHOWN[False]], [PALETTE[0], PALETTE[6]], legend)
    zero = layer("rule", {"x": {"datum": 0}}, strokeDash=[4, 3])
    span = {"y": y, "x": {"field": "low", **x}, "x2": {"field": "high"}, "color": hue}
    line = layer("rule", span, strokeWidth=3)
    point = dot({"y": y, "x": {"field": "value", **x}, "color": hue}, size=90, tooltip=True)
    return [zero, line, point]
