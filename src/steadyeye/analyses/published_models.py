"""The user's models among the published ones."""

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from steadyeye.charts.style import chart, colour, interval, percent, shares
from steadyeye.core.results import find
from steadyeye.core.sections import Figure, Section, Table
from steadyeye.core.types import Evaluated, needs

DATA = Path(__file__).resolve().parent / "data" / "published_testbed.csv"
SOURCE = (
    "Taori et al., “Measuring Robustness to Natural Distribution Shifts in Image Classification”, "
    "NeurIPS 2020, on the sets of Shankar et al., “Do Image Classifiers Generalize Across Time?”"
)
TITLES = {"imagenet_vid_robust": "ImageNet-Vid-Robust", "ytbb_robust": "YTBB-Robust"}


@needs("truth", "group", "offset")
def published_models(evaluated: Sequence[Evaluated]) -> Section | None:
    """Accuracy against pm-k beside 335 published models.

    None where no model has both results. The published points are of the same set for
    ImageNet-Vid-Robust and YTBB-Robust, else of ImageNet-Vid-Robust, and the text says so.
    """
    rows = [row for one in evaluated if (row := _row(one))]
    if not rows:
        return None
    data = evaluated[0].predictions.data
    shown = data if data in TITLES else "imagenet_vid_robust"
    caveat = (
        f"The grey points are {len(published(shown))} published models on {TITLES[shown]}"
        + (", the same set." if shown == data else ", another set than yours: ")
        + ("" if shown == data else "compare the distance from the diagonal, not the position.")
    )
    return Section(
        place=30,
        title="Among published models",
        text=(
            "On the diagonal nothing would break. The further below it, the more of what a model "
            f"gets right it loses on neighbouring frames. {caveat}",
        ),
        figures=(_figure(rows, shown),),
        tables=(_table(rows),),
    )


@cache
def published(data: str) -> tuple[tuple[str, float, float], ...]:
    """(model, accuracy, pm-10) of every published model on a set, shares 0…1."""
    with DATA.open(newline="", encoding="utf-8") as file:
        return tuple(
            (row["model"], float(row[f"{data}_pm0"]) / 100, float(row[f"{data}_pm10"]) / 100)
            for row in csv.DictReader(file)
            if row[f"{data}_pm0"] and row[f"{data}_pm10"]
        )


def _row(one: Evaluated) -> dict[str, Any] | None:
    original, perturbed = find(one.results, "accuracy"), find(one.results, "pm_k")
    if original is None or perturbed is None or original.value is None:
        return None
    return {
        "model": one.predictions.model,
        "original": original.value,
        "original_low": original.low,
        "original_high": original.high,
        "perturbed": perturbed.value,
        "perturbed_low": perturbed.low,
        "perturbed_high": perturbed.high,
    }


def _figure(rows: list[dict[str, Any]], shown: str) -> Figure:
    models = [row["model"] for row in rows]
    x, y = shares("original", "accuracy on anchors"), shares("perturbed", "pm-k")
    grey = [{"model": m, "original": a, "perturbed": b} for m, a, b in published(shown)]
    background = {
        "data": {"values": grey},
        "mark": {
            "type": "circle",
            "color": "#9a9a9a",
            "opacity": 0.45,
            "size": 22,
            "tooltip": True,
        },
        "encoding": {"x": x, "y": y, "tooltip": [{"field": "model"}]},
    }
    diagonal = {
        "data": {"values": [{"original": 0, "perturbed": 0}, {"original": 1, "perturbed": 1}]},
        "mark": {"type": "line", "strokeDash": [4, 4], "color": "#9a9a9a"},
        "encoding": {"x": x, "y": y},
    }
    hue = colour(models, "model", "")
    across = {
        "mark": {"type": "rule"},
        "encoding": {
            "x": {**x, "field": "original_low"},
            "x2": {"field": "original_high"},
            "y": y,
            "color": hue,
        },
    }
    along = {
        "mark": {"type": "rule"},
        "encoding": {
            "x": x,
            "y": {**y, "field": "perturbed_low"},
            "y2": {"field": "perturbed_high"},
            "color": hue,
        },
    }
    points = {
        "mark": {"type": "point", "filled": True, "size": 90, "tooltip": True},
        "encoding": {"x": x, "y": y, "color": hue},
    }
    layers = [diagonal, background, across, along, points]
    return Figure(
        name="published_models",
        caption=f"Accuracy against pm-k with 95 % intervals. Grey: {TITLES[shown]}, {SOURCE}.",
        alt=f"Accuracy against pm-k of {len(grey)} published models and {', '.join(models)}.",
        spec={**chart(layers, height=420), "data": {"values": rows}},
    )


def _table(rows: list[dict[str, Any]]) -> Table:
    body = tuple(
        (
            row["model"],
            *(
                f"{percent(row[of])} ({interval(row[f'{of}_low'], row[f'{of}_high'])})"
                for of in ("original", "perturbed")
            ),
        )
        for row in rows
    )
    return Table("Your models", ("model", "accuracy", "pm-k"), body)
