"""The map of two sets of regions, coloured by cause, with their pictures on hover."""

import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of, percent
from steadyeye.core.report_types import Figure, Picture
from steadyeye.core.seeds import stream
from steadyeye.explain.embedding.blind_spots import Blindness
from steadyeye.explain.embedding.density_ratio import Vectors
from steadyeye.report.charts.specs import BELOW, PALETTE, chart, map_names

DRAWN = 500
"""Regions of either set on a map, which every reader's browser can still draw."""

THUMBNAILS = 400
"""Pictures a page carries for one map: about 1 MB."""

COLOURS = {
    "reference": PALETTE[6],
    "right": PALETTE[2],
    "misclassification": PALETTE[1],
    "out of distribution": PALETTE[3],
    "background": PALETTE[0],
    "unverified": PALETTE[4],
    "missed": PALETTE[5],
    "mistake": PALETTE[1],
}
TOOLTIP = {
    "image": "image",
    "says": "prediction",
    "is": "label",
    "cause": "cause",
    "spot": "where",
    "sample": "region",
}
"""Field → title; the tooltip shows the field with the title image as a picture."""

CHOSEN = {True: "sparse in the reference data", False: "far from the reference data (a hint)"}
"""The name of a chosen region, by whether the test is significant."""
ELSEWHERE = "elsewhere"


def name_cause(cause: str) -> str:
    """A cause in words; "right" for none."""
    return cause.replace("_", " ") or "right"


def map_figure(regions: Blindness, name: str) -> Figure:
    """A map of both sets, at most `DRAWN` of each, sparse regions first."""
    places = _choose_drawn(regions)
    laid = layout(regions.points[places])
    tags, score = regions.predictions.tags, regions.predictions.tags["score"]
    number = np.cumsum(~regions.reference) - 1
    values, title = [], CHOSEN[regions.proven]
    for place, (x, y) in zip(places.tolist(), laid.place.tolist(), strict=True):
        row, other = regions.rows[place], int(number[place])
        of_reference = bool(regions.reference[place])
        thin = not of_reference and bool(regions.chosen[other])
        values.append(
            {
                "x": round(x, 3),
                "y": round(y, 3),
                "sample": str(regions.predictions.ids[row]),
                "cause": "reference" if of_reference else name_cause(str(tags["cause"][row])),
                "where": title if thin else ELSEWHERE,
                "says": f"{tags['said'][row]}, {percent(float(score[row]), 0)}",
                "is": str(tags["true"][row]),
                "spot": "" if of_reference else _spot(regions, other),
            }
        )
    return Figure(
        name=name,
        caption=(
            f"{laid.name} of the features: {len(values):,} of "
            f"{number_of(len(regions.rows), 'region')}. Regions near each other have similar "
            "features; the axes have no meaning."
            + (f" Diamonds: {title}." if regions.chosen.any() else "")
            + " Hover for the picture."
        ),
        alt=(
            f"A {laid.name} map of {number_of(int(regions.reference[places].sum()), 'region')} of "
            f"the reference data and {int((~regions.reference[places]).sum()):,} of the tested "
            "data, coloured by cause."
        ),
        spec=_spec(values, title),
        data=regions.predictions.data,
        thumbnails=tuple(
            Picture(sample=str(regions.predictions.ids[row]), title="", lines=(), small=True)
            for row in regions.rows[places[:THUMBNAILS]]
        ),
    )


def _choose_drawn(regions: Blindness) -> NDArray[np.intp]:
    """Indices of the points in the map, those with a thumbnail first."""
    rng = stream(0, "map", regions.predictions.fingerprint)
    others = np.flatnonzero(~regions.reference)
    wrong = regions.tag("cause") != ""
    # mistakes before the rest, and by chance among equals
    order = np.lexsort((rng.random(len(others)), ~wrong))
    thin, rest = order[regions.chosen[order]], order[~regions.chosen[order]]
    # where there is more than enough of both, three of five points are of where it is thin
    part = max(3 * DRAWN // 5, DRAWN - len(rest))
    data = others[np.concatenate([thin[:part], rest])[:DRAWN]]
    reference = rng.permutation(np.flatnonzero(regions.reference))[:DRAWN]
    # a third of the thumbnails shows the reference, or more where the data needs fewer
    mine = min(len(data), max(THUMBNAILS - len(reference), 2 * THUMBNAILS // 3))
    data = rng.permutation(data)
    return np.concatenate([data[:mine], reference, data[mine:]])


def _spot(regions: Blindness, other: int) -> str:
    spot = int(regions.spot[other])
    ratio = float(np.exp(regions.thinness.ratio[other]))
    where = f"{regions.noun} {spot + 1}, " if spot >= 0 else ""
    return f"{where}density ratio {ratio:.1f}"


def _spec(values: list[dict[str, Any]], title: str) -> dict[str, Any]:
    """The chart; `title`: how the legend calls the chosen regions."""
    reference, thin = "datum.cause === 'reference'", f"datum.where === '{title}'"
    shapes = {title: "diamond", ELSEWHERE: "circle"}
    layers = [
        _layer(values, reference, 30, 0.45, shapes),
        _layer(values, f"!({reference}) && !({thin})", 45, 0.8, shapes),
        _layer(values, thin, 90, 0.9, shapes),
    ]
    filled_layers = [
        any(row["cause"] == "reference" for row in values),
        any(row["cause"] != "reference" and row["where"] == ELSEWHERE for row in values),
        any(row["where"] != ELSEWHERE for row in values),
    ]
    return {
        # an empty layer would warn in the reader's console
        **chart(
            [part for part, filled in zip(layers, filled_layers, strict=True) if filled], height=460
        ),
        "data": {"values": values},
        "datasets": {"thumbnails": []},
        "transform": [
            {
                "lookup": "sample",
                "from": {"data": {"name": "thumbnails"}, "key": "sample", "fields": ["image"]},
            },
            # a tooltip would ask for a picture called null
            {"calculate": "isValid(datum.image) ? datum.image : ''", "as": "image"},
        ],
    }


def _layer(
    values: list[dict[str, Any]], test: str, size: int, opacity: float, shapes: dict[str, str]
) -> dict[str, Any]:
    """The points that pass a test; all layers share their colours and shapes."""
    causes = [cause for cause in COLOURS if any(row["cause"] == cause for row in values)]
    grey = {"symbolFillColor": PALETTE[6], "symbolStrokeColor": PALETTE[6]}
    axis = {"axis": None, "scale": {"zero": False, "nice": False}, "type": "quantitative"}
    return {
        "transform": [{"filter": test}],
        "mark": {"type": "point", "filled": True, "size": size, "opacity": opacity},
        "encoding": {
            "x": {"field": "x", **axis},
            "y": {"field": "y", **axis},
            "color": map_names("cause", causes, [COLOURS[cause] for cause in causes], BELOW),
            # by itself black, which is unreadable on a dark ground
            "shape": map_names("where", list(shapes), list(shapes.values()), {**BELOW, **grey}),
            "tooltip": [
                {"field": field, "type": "nominal", "title": title}
                for field, title in TOOLTIP.items()
            ],
        },
    }


NEIGHBOURS = 15  # of UMAP


@dataclass(frozen=True, eq=False)
class Layout:
    """Where points lie on a map. `name`: "UMAP" or "PCA"; `place`: (n, 2) float64."""

    name: str
    place: NDArray[np.float64]


def layout(points: Vectors) -> Layout:
    """The points on a plane by UMAP, or by their first two components if it is not installed.

    `points`: (n, d ≥ 2) float32, components by falling variance. McInnes, Healy and Melville,
    "UMAP: Uniform Manifold Approximation and Projection", 2018; one thread, seeded.
    """
    plain = Layout("PCA", points[:, :2].astype(np.float64))
    if len(points) <= 2 * NEIGHBOURS:
        return plain
    try:
        from umap import UMAP
    except ModuleNotFoundError:
        return plain
    _keep_compiled()
    with warnings.catch_warnings():
        # that one thread is slower, and that graphs may fall apart: both are wanted
        warnings.simplefilter("ignore")
        positions = UMAP(n_neighbors=NEIGHBOURS, random_state=0, n_jobs=1).fit_transform(points)
    return Layout("UMAP", np.asarray(positions, dtype=np.float64))


@cache
def _keep_compiled() -> None:
    """Makes numba cache the compiled UMAP, which otherwise takes 13 seconds in each process."""
    from numba.core.registry import CPUDispatcher

    for module in ("umap.umap_", "umap.layouts", "umap.utils", "umap.spectral"):
        for function in vars(import_module(module)).values():
            # umap keeps some of its own; without a folder that can be written none is kept
            if isinstance(function, CPUDispatcher):
                with suppress(RuntimeError):
                    function.enable_caching()
