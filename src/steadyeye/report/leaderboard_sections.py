"""The sections of a leaderboard of many models on many data sets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import list_texts
from steadyeye.core.format import format_difference, format_share, number_of, percent, points
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.stats.intervals import proportion
from steadyeye.metrics.testbed.published_models import PublishedModels
from steadyeye.metrics.testbed.testbed_fit import (
    Line,
    effective_robustness,
    fit,
)
from steadyeye.report.charts.specs import chart, colour, dot, fields_of, layer, rows_of, shares
from steadyeye.report.comparison.leaderboards import Boards, Leaderboard, rank, rank_range
from steadyeye.report.comparison.metric_wording import name_metric
from steadyeye.report.comparison.own_line import (
    AnchorOutcomes,
    OwnLine,
    explain_no_line,
)
from steadyeye.report.comparison.scatter import Cross, draw_own_line
from steadyeye.report.comparison.set_correlation import (
    SetCorrelation,
    describe_correlation,
    format_tau,
)
from steadyeye.report.render.document import interval_of, value_of
from steadyeye.report.run_costs import ModelCost

ROW = 30


@dataclass(frozen=True, eq=False)
class DataLines:
    """The models of one data set around their own lines.

    `anchors`: the outcomes of each model on the anchors; `videos`: their videos. `k`: of pm-k.
    `own`: the lines in probit and in logit space, empty if `explain_no_line` gives a reason.
    `published`: the published models to compare with, None if `left_out` gives a reason.
    `is_same_set`: whether the published models were measured on the same anchors.
    """

    data: str
    k: int
    anchors: tuple[AnchorOutcomes, ...]
    videos: NDArray[np.str_]
    own: tuple[OwnLine, ...]
    published: PublishedModels | None
    left_out: str
    is_same_set: bool


def build_matrix(rankings: Sequence[Boards]) -> Section:
    """All models on all data sets: the main number of each with interval and rank."""
    main = [boards.boards[0] for boards in rankings]
    models = list(dict.fromkeys(s.model for board in main for s in board.standings))
    header = ("model", *(_name_column(boards) for boards in rankings))
    body = tuple((model, *(_format_place(board, model) for board in main)) for model in models)
    models_text, data_text = number_of(len(models), "model"), number_of(len(main), "data set")
    empty = any("—" in row for row in body)
    gaps = " A dash: the model was not run on that data set." if empty else ""
    return Section(
        title=f"{models_text} on {data_text}",
        topic=Topic.COMPARED,
        place=1,
        text=(
            "Each cell has the value, its 95 % interval and the rank. Rank = 1 + the number of "
            "models that are clearly better on the same samples; = marks a rank that models "
            f"share.{gaps}",
            "In brackets: the ranks that the data leave open, if more than one. They hold for all "
            "models of a data set at once (95 %), also if models fail on whole videos.",
        ),
        method=(
            "Differences are clear if p ≤ 0.05, adjusted by Holm for all pairs of models of the "
            "data set. The ranks in brackets count pairs by Gaffke's p value, adjusted by Holm, "
            "which allows for rare videos and needs more of them. So they may begin before the "
            "rank. They are not adjusted for the number of data sets or metrics.",
        ),
        tables=(Table("Models and data sets", header, body, open=True),),
        figures=(_draw_matrix(rankings, models),),
    )


def _name_column(boards: Boards) -> str:
    return f"{boards.data}, {name_metric(boards.boards[0].metric)}"


def _format_place(board: Leaderboard, model: str) -> str:
    for place, standing in enumerate(board.standings):
        if standing.model == model:
            result = standing.result
            text = f"{value_of(result)} ({interval_of(result)}), rank {rank(board, place)}"
            is_open = rank_range(standing) != f"{standing.rank}"
            return f"{text} ({rank_range(standing)})" if is_open else text
    return "—"


def _draw_matrix(rankings: Sequence[Boards], models: Sequence[str]) -> Figure:
    values = [
        {
            "model": standing.model,
            "data": _name_column(boards),
            **fields_of(standing.result),
            "rank": rank(boards.boards[0], place),
            "ranks": rank_range(standing),
            "n": standing.result.n,
        }
        for boards in rankings
        for place, standing in enumerate(boards.boards[0].standings)
    ]
    names = [_name_column(boards) for boards in rankings]
    hue = colour(names, "data", "")
    aside = {"field": "data", "type": "nominal", "sort": names}
    place = {"y": rows_of("model"), "yOffset": aside, "color": hue}
    tips = [{"field": name} for name in ("model", "data", "rank", "ranks", "n")]
    tips.append({"field": "value", "format": ".1%"})
    span = {**place, "x": {**shares("low", "")}, "x2": {"field": "high"}}
    layers = [
        layer("rule", span, strokeWidth=2),
        dot({**place, "x": shares("value", ""), "tooltip": tips}, size=70),
    ]
    height = len(models) * max(ROW * len(names) * 0.7, ROW) + 10
    return Figure(
        name="models_and_data_sets",
        caption="The main number of each model on each data set, with its 95 % interval.",
        alt="The values of all models on all data sets; the table has them with their ranks.",
        spec=chart(layers, int(height), values=values),
    )


def build_correlations(pairs: Sequence[SetCorrelation], data: int) -> Section | None:
    """The section on the order of models across data sets; None for one data set."""
    if data < 2:
        return None
    title = "Are the models that are better on one data set better on another?"
    if not pairs:
        text = "This needs three models or more with the same metric on both data sets of a pair."
        return Section(title=title, topic=Topic.COMPARED, place=2, text=(text,))
    rows = tuple(
        (
            name_metric(pair.metric),
            f"{pair.first} and {pair.second}",
            format_tau(pair.value),
            "—" if pair.low is None else f"{format_tau(pair.low)} to {format_tau(pair.high)}",
            f"{len(pair.models)}",
            pair.method,
        )
        for pair in pairs
    )
    header = ("metric", "data sets", "τ", "95 % interval", "models", "method")
    several = " The intervals are not adjusted for the number of pairs." if len(pairs) > 1 else ""
    return Section(
        title=title,
        topic=Topic.COMPARED,
        place=2,
        text=describe_main(pairs),
        method=(
            "τ is Kendall's tau-b between the values of the same models on the two data sets: the "
            "share of pairs of models in the same order minus that in the opposite order, allowing "
            "for ties. The interval resamples the videos (or images) of each data set, "
            "independently of the other; each resample is the same for all models. Each has one "
            "further video, unseen, on which the models are in the opposite order of the other "
            "data set for the lower end and in the same order for the upper end. The end away from "
            "0 counts every pair of models that either data set leaves open as in the same order "
            "(above 0), or in the opposite one (below 0). It is about other videos of these kinds "
            f"and these same models, not about other models.{several}",
        ),
        tables=(Table("Rank correlation between data sets", header, rows),),
    )


def describe_main(pairs: Sequence[SetCorrelation]) -> tuple[str, ...]:
    """A sentence for each pair of data sets, on the most important metric of both.

    `pairs`: the most important metric first.
    """
    main: dict[tuple[str, str], str] = {}
    for pair in pairs:
        main.setdefault((pair.first, pair.second), describe_correlation(pair))
    return tuple(main.values())


def build_own_line(lines: DataLines) -> Section:
    """The line from accuracy to pm-k through the user's own models, and the published one."""
    title = f"The line from accuracy to pm-{lines.k} through your models on {lines.data}"
    reason = explain_no_line(lines.anchors)
    if reason:
        text = [reason]
        if lines.published is not None:
            text.append("The distances from the published line are in the table of all numbers.")
        return Section(title=title, topic=Topic.COMPARED, place=30, text=tuple(text))
    crosses = [
        Cross(m.model, proportion(m.right, lines.videos), proportion(m.steady, lines.videos))
        for m in lines.anchors
    ]
    published_lines = _fit_published(lines)
    figures = []
    for own, line in zip(lines.own, published_lines, strict=True):
        background = None if lines.published is None or line is None else (lines.published, line)
        figures.append(draw_own_line(own.line, crosses, lines.k, background))
    distances = _build_distances(lines, crosses, published_lines[0])
    return Section(
        title=title,
        topic=Topic.COMPARED,
        place=30,
        text=_describe_line(lines),
        method=(_explain_line(lines),),
        figures=tuple(figures),
        tables=(distances, _build_coefficients(lines, published_lines)),
    )


def _fit_published(lines: DataLines) -> list[Line | None]:
    """The published line in the space of each own line; None without published models."""
    published = lines.published
    if published is None:
        return [None] * len(lines.own)
    return [
        fit(published.original, published.perturbed, own.line.space, published.anchors)
        for own in lines.own
    ]


def _describe_line(lines: DataLines) -> tuple[str, ...]:
    own = lines.own[0]
    largest = max(own.distances, key=lambda item: abs(item.value))
    text = (
        f"{largest.model} is the furthest from the line of your {len(own.distances)} models "
        f"(probit space): pm-{lines.k} {percent(largest.pm_k)}, {percent(largest.expected)} on "
        f"the line, {format_difference(largest)} percentage points."
    )
    bounds = [(d.model, d.low, d.high) for d in own.distances]
    clear = [m for m, low, high in bounds if (low or 0) > 0 or (high or 0) < 0]
    if clear:
        verdict = f"Clearly off the line, each by its own interval: {list_texts(clear)}."
    elif own.distances[0].low is not None:
        verdict = "No model is clearly off the line."
    else:
        verdict = f"No interval: {own.method.removeprefix('none: ')}."
    parts = [text, verdict]
    if own.moved:
        parts.append(
            f"An accuracy or pm-{lines.k} of 0 or 1 has no probit and no logit; those of "
            f"{list_texts(own.moved)} count as half an anchor more or less."
        )
    if lines.left_out:
        parts.append(lines.left_out)
    elif lines.published is not None and not lines.is_same_set:
        parts.append(
            f"The published models were measured on {lines.published.title}, which is other "
            "data: their line is only a comparison."
        )
    return tuple(parts)


def _explain_line(lines: DataLines) -> str:
    return (
        f"Least squares through {len(lines.anchors)} models, each counting the same, in probit and "
        "in logit space. Each model is itself part of the line, which draws it towards itself, "
        f"most with few models. Intervals: {lines.own[0].method}, the same resamples for all "
        "models and the line fitted in each. Each has one further video, unseen, on which the "
        "model alone breaks for the lower end and all others break for the upper end. They are "
        "about other footage and these same models. They are not adjusted for the number of models."
    )


def _build_distances(lines: DataLines, crosses: Sequence[Cross], published: Line | None) -> Table:
    """Each model against its own line; `published`: the published one in probit space."""
    probit, logit = lines.own
    rows = []
    for i, cross in enumerate(crosses):
        cells = [
            cross.model,
            format_share(cross.original),
            format_share(cross.perturbed),
            percent(probit.distances[i].expected),
            format_difference(probit.distances[i]),
            format_difference(logit.distances[i]),
        ]
        if published is not None:
            model = lines.anchors[i]
            effect = effective_robustness(model.right, model.steady, lines.videos, published)
            ends = f"({points(effect.low)} to {points(effect.high)})"
            cells.append(f"{points(effect.value)} {ends}")
        rows.append((*cells, f"{cross.original.n:,}"))
    header = [
        *("model", "accuracy", f"pm-{lines.k}", f"pm-{lines.k} on your line"),
        *("distance from your line, probit (pp)", "distance from your line, logit (pp)"),
    ]
    if published is not None:
        header.append("distance from the published line, probit (pp)")
    return Table("Your models and the lines", (*header, "anchors"), tuple(rows), open=True)


def _build_coefficients(lines: DataLines, published: Sequence[Line | None]) -> Table:
    rows = []
    for own, line in zip(lines.own, published, strict=True):
        rows.append(_describe_coefficients("your models", own.line, own.slope))
        if line is not None:
            rows.append(_describe_coefficients("published models", line, None))
    return Table("The lines", ("line", "slope", "intercept", "r²", "models"), tuple(rows))


def _describe_coefficients(
    name: str, line: Line, slope: tuple[float, float] | None
) -> tuple[str, ...]:
    ends = f" ({slope[0]:.3f} to {slope[1]:.3f})" if slope else ""
    r2 = "—" if np.isnan(line.r2) else f"{line.r2:.3f}"
    numbers = (f"{line.slope:.3f}{ends}", f"{line.intercept:.3f}", r2, f"{line.n}")
    return f"{name}, {line.space.name}", *(number.replace("-", "−") for number in numbers)


def build_costs(costs: Sequence[ModelCost], results: int) -> Section:
    """Inference time of the models; `results`: pairs of a model and a data set on the board."""
    title = "Inference time of the models"
    if not costs:
        text = (
            "These runs recorded no times: their predictions came from the cache or from files. "
            "Run with --no-cache to record times."
        )
        return Section(title=title, topic=Topic.COMPARED, place=50, text=(text,))
    lacking = results - len({(cost.model, cost.data) for cost in costs})
    missing = (
        f" {lacking} of {number_of(results, 'result')} without a time on record: their predictions "
        "came from the cache, from files, or from a run that was resumed."
        if lacking > 0
        else ""
    )
    return Section(
        title=title,
        topic=Topic.COMPARED,
        place=50,
        text=(
            "Times are those that the runs recorded, each measured once, so there is no interval. "
            "They depend on the machine and its load. Parameters and file sizes are not recorded."
            f"{missing}",
        ),
        method=(
            "Inference per image is the time inside the model, added up over threads, divided by "
            "the images that were inferred; images per second count decoding and writing too.",
        ),
        tables=(_build_times(costs),),
    )


def _build_times(costs: Sequence[ModelCost]) -> Table:
    rows = tuple(
        (
            cost.model,
            cost.data,
            f"{cost.per_image:.1f}",
            "—" if cost.rate is None else f"{cost.rate:.1f}",
            f"{cost.images:,}",
            "—" if cost.threads is None else f"{cost.threads}",
            cost.device,
            cost.runtime or "—",
        )
        for cost in costs
    )
    header = (
        *("model", "data", "inference per image (ms)", "images per second"),
        *("images", "threads", "device", "runtime"),
    )
    return Table("Time per model", header, rows)
