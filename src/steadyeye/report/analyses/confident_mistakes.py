"""Confident mistakes of a detector, by cause and in pictures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from steadyeye.core.disk_columns import read_entries, release_pages
from steadyeye.core.format import format_share, interval, number_of, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Exhibit, Figure, Mark, Picture, Section, Table, Topic
from steadyeye.core.types import Evaluated, needs
from steadyeye.explain.mining.candidates import FAINT, candidates, mistake_film
from steadyeye.explain.mining.causes import CAUSES, MISTAKES, SCORE, WORDS, Judged, judge_detections
from steadyeye.explain.mining.error_rates import Shares, shares
from steadyeye.explain.mining.mistakes import Mistake, Mistakes, name_of
from steadyeye.report.charts.specs import chart, colour, fields_of, layer, shape

SHOWN = 12  # pictures of a cause
FIRST = 3  # pictures on the first screen
PAIRS = 20  # rows of the table of confusions


@needs("boxes", "detections")
def confident_mistakes(evaluated: Sequence[Evaluated], score: float = SCORE) -> Section | None:
    """Confident wrong detections: their causes, the classes they confuse, and pictures.

    `score`: to be exceeded. Every image counts, anchors and neighbours alike. Causes as in
    `explain.mining.causes` (Lau et al. 2021, Section 3); pictures are of each mistake once. None if
    no detection has that score.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections, example_models
        >>> print(confident_mistakes(example_models(example_detections())).title)
        No confident detection that can be checked against the labels
    """
    every = [model.predictions for model in evaluated]
    tables = [table for table in every if table.raw_detections is not None]
    old = [table.model for table in every if table.raw_detections is None]
    judged = [judge_detections(item, score) for item in tables]
    counted = [shares(*pair) for pair in zip(tables, judged, strict=True)]
    if not old and not any(item.confident for item in counted):
        return None
    mistakes = candidates(tables, judged)
    again = (
        f"{', '.join(old)}: written by an earlier version, which did not keep all detections; "
        "run again to see confident mistakes here."
    )
    return Section(
        topic=Topic.WHAT,
        place=22,
        title=_title(counted),
        text=(
            *([_meaning(score)] if tables else []),
            *map(_describe_model, tables, counted),
            *([again] if old else []),
        ),
        figures=(_figure(tables, counted),) if any(item.n_judged for item in counted) else (),
        tables=tuple(_tables(tables, judged, counted)),
        exhibits=tuple(_exhibits(tables, mistakes, score)),
        lead=_lead(tables, mistakes),
    )


def _lead(tables: Sequence[Predictions], mistakes: Mistakes) -> Exhibit | None:
    """The most confident mistakes, each of another pair of classes, those on an object first."""
    if not len(mistakes):
        return None
    order = np.argsort(mistakes.truth == 0, kind="stable")
    data = np.array([table.data for table in tables])[mistakes.table[order]]
    order = order[data == data[0]]
    pairs = np.stack([mistakes.truth[order], mistakes.predicted[order]])
    rows = np.sort(np.unique(pairs, axis=1, return_index=True)[1])[:FIRST]
    first = mistakes.build(order[rows])
    exhibits = [_exhibit(tables[mistake.table], mistake, "") for mistake in first]
    pictures = [
        replace(mistake.pictures[0], title=mistake.title, lines=mistake.pictures[0].lines[:2])
        for mistake in exhibits
    ]
    end = "" if len(first) == 1 else "s, each of another pair of classes"
    return replace(
        exhibits[0],
        title=f"The most confident mistake{end}",
        model=", ".join(dict.fromkeys(model for mistake in first for model in mistake.models)),
        pictures=tuple(pictures),
    )


def _title(counted: Sequence[Shares]) -> str:
    wrong = sum(round((model.wrong.value or 0) * model.n_judged) for model in counted)
    several = f" of {len(counted)} detectors" if len(counted) > 1 else ""
    judged = sum(model.n_judged for model in counted)
    if not judged:
        return "No confident detection that can be checked against the labels"
    return f"Confident mistakes: {wrong:,} of {number_of(judged, 'detection')}{several}"


def _meaning(score: float) -> str:
    return (
        f"Detections with a score above {score:g} that disagree with the labels: on an object "
        "of another class (misclassification), on an object of a class that the detector does "
        "not have (out of distribution), or where nothing is labelled (background). A labelling "
        "error looks the same; the command steadyeye mine makes a set for review. In the "
        "pictures: dashed orange the detection, white the true box with the largest overlap."
    )


def _describe_model(predictions: Predictions, of: Shares) -> str:
    """The finding of one model."""
    aside = [
        f"{n:,} {why}"
        for n, why in (
            (of.unverified, "of a class that the labels of the image do not cover"),
            (of.excused, "in a crowd of their class"),
        )
        if n
    ]
    left = f" Left out: {' and '.join(aside)}." if aside else ""
    if not of.n_judged:
        none = f"none of {of.confident:,} such detections can be checked"
        return f"{predictions.model}: {none}.{left}"
    parts = [
        f"{cause.replace('_', ' ')} {round((share.value or 0) * share.n):,}"
        for cause, share in zip(MISTAKES, of.causes, strict=True)
    ]
    return (
        f"{predictions.model}: {format_share(of.wrong)} of {of.n_judged:,} confident detections "
        f"are wrong: {', '.join(parts)}.{left}"
    )


def _tables(
    tables: Sequence[Predictions], judged: Sequence[Judged], counted: Sequence[Shares]
) -> list[Table]:
    header = (
        "cause",
        "model",
        "detections",
        "share",
        "95 % interval",
        "method",
    )
    rows = [
        (
            cause.replace("_", " "),
            table.model,
            f"{round((share.value or 0) * share.n):,} of {share.n:,}",
            percent(share.value),
            interval(share.low, share.high),
            share.method,
        )
        for i, cause in enumerate(MISTAKES)
        for table, of in zip(tables, counted, strict=True)
        for share in (of.causes[i],)
    ]
    parts = [Table("Confident mistakes by cause", header, tuple(rows))] if rows else []
    pairs = _confusions(tables, judged)
    if pairs:
        more = f", the {PAIRS} most frequent of {len(pairs):,}" if len(pairs) > PAIRS else ""
        names = ("label → prediction", "model", "detections", "images", "highest score")
        parts.append(Table(f"Confusions{more}", names, tuple(pairs[:PAIRS])))
    return parts


def _confusions(
    tables: Sequence[Predictions], judged: Sequence[Judged]
) -> list[tuple[str, str, str, str, str]]:
    """Rows of predicted class, true class and count, the most frequent first."""
    rows = []
    for table, of in zip(tables, judged, strict=True):
        detections, truth = table.raw_detections, table.boxes
        assert detections is not None, "those without are left out"
        assert truth is not None, "checked by needs"
        wrong = np.flatnonzero((of.cause >= 0) & (of.cause < len(MISTAKES)))
        places, objects = of.detection[wrong], of.object[wrong]
        image, label, score = (
            read_entries(column, places).tolist()
            for column in (detections.image, detections.label, detections.score)
        )
        of_nothing = CAUSES.index("background")
        pair = [
            (
                table.model_classes[own],
                WORDS["background"] if cause == of_nothing else name_of(table, truth.label[thing]),
            )
            for own, thing, cause in zip(label, objects, of.cause[wrong], strict=True)
        ]
        images: dict[tuple[str, str], set[int]] = {}
        best: dict[tuple[str, str], float] = {}
        for own_image, own_score, names in zip(image, score, pair, strict=True):
            images.setdefault(names, set()).add(own_image)
            best[names] = max(best.get(names, 0.0), own_score)
        rows += [
            (n, names, table.model, images[names], best[names])
            for names, n in Counter(pair).items()
        ]
    rows.sort(key=lambda row: (-row[0], row[1], row[2]))
    return [
        (f"{label} → {detections}", model, f"{n:,}", f"{len(where):,}", f"{top:.2f}")
        for n, (detections, label), model, where, top in rows
    ]


def _figure(tables: Sequence[Predictions], counted: Sequence[Shares]) -> Figure:
    """The share of each cause with its interval, for all models."""
    values = [
        {
            "cause": cause.replace("_", " "),
            "model": table.model,
            **fields_of(share),
            "n": share.n,
        }
        for table, of in zip(tables, counted, strict=True)
        for cause, share in zip(MISTAKES, of.causes, strict=True)
        if share.value is not None
    ]
    models = [table.model for table in tables]
    widest = max(share.high or 0.0 for of in counted for share in of.causes)
    layers = _layers(models, {"format": ".0%" if widest > 0.05 else ".1%"})
    return Figure(
        name="confident_mistakes",
        caption=(
            "Confident mistakes by cause, as a share of the checked detections, with 95 % "
            "intervals."
        ),
        alt=f"Shares of confident mistakes by cause for {', '.join(models)}.",
        spec=chart(layers, height=90 + 45 * len(models), values=values),
    )


def _layers(models: Sequence[str], axis: dict[str, Any]) -> list[dict[str, Any]]:
    """Intervals as rules and shares as points, in the colour and the shape of their model."""
    title = "share of checked detections"
    place: dict[str, Any] = {
        "y": {
            "field": "cause",
            "type": "nominal",
            "title": None,
            "sort": [cause.replace("_", " ") for cause in MISTAKES],
            "axis": {"labelLimit": 130},
        },
        "yOffset": {"field": "model", "type": "nominal", "sort": models},
        "color": colour(models, "model", ""),
    }
    quantity = {"type": "quantitative", "title": title, "axis": axis}
    ends = {"x": {"field": "low", **quantity}, "x2": {"field": "high"}}
    form = {**shape(models, "model"), "legend": place["color"]["legend"]}
    value = {"x": {"field": "value", **quantity}, "shape": form}
    return [
        layer("rule", {**place, **ends}, strokeWidth=2),
        layer("point", {**place, **value}, filled=True, size=70, tooltip=True, opacity=1),
    ]


def _exhibits(tables: Sequence[Predictions], mistakes: Mistakes, score: float) -> list[Exhibit]:
    """Pictures, cause by cause, the most confident first; with films where they are of videos."""
    exhibits = []
    faint = [judge_detections(item, min(FAINT, score)) for item in tables]
    for cause in MISTAKES:
        mine = np.flatnonzero(mistakes.cause == CAUSES.index(cause))
        of = f", the {SHOWN} most confident of {len(mine):,}" if len(mine) > SHOWN else ""
        group = f"{cause.replace('_', ' ').capitalize()}: {WORDS[cause]}{of}"
        for item in mistakes.build(mine[:SHOWN]):
            table = tables[item.table]
            film = mistake_film(table, faint[item.table], item.detection)
            exhibits.append(replace(_exhibit(table, item, group), film=film))
            # a single entry of a column may bring a megabyte of it to memory
            release_pages()
    return exhibits


def _exhibit(predictions: Predictions, mistake: Mistake, group: str) -> Exhibit:
    truth = predictions.boxes
    assert truth is not None, "checked by needs"
    marks = [Mark("wrong", mistake.box, f"{mistake.predicted} {mistake.score:.2f}")]
    lines = [f"predicts {mistake.predicted}, {mistake.score:.2f}"]
    if mistake.object >= 0:
        name = name_of(predictions, int(truth.label[mistake.object]))
        x0, y0, x1, y1 = (float(value) for value in truth.boxes[mistake.object])
        marks.insert(0, Mark("truth", (x0, y0, x1, y1), ""))
        lines.append(
            f"label {mistake.truth}, IoU {mistake.iou:.2f}"
            if mistake.truth
            else f"nearest true box: {name}, IoU {mistake.iou:.2f}"
        )
    else:
        lines.append("no true box overlaps")
    if mistake.times > len(mistake.models):
        lines.append(f"{number_of(mistake.times, 'detection')} of this object")
    picture = Picture(mistake.sample, mistake.sample, tuple(lines), False, tuple(marks))
    label = mistake.truth or "nothing"
    return Exhibit(
        title=f"{label} → {mistake.predicted}",
        model=", ".join(mistake.models),
        data=predictions.data,
        pictures=(picture,),
        group=group,
        labels=(mistake.truth,) if mistake.truth else (),
        kinds=(mistake.cause.replace("_", " "),),
    )
