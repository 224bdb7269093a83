"""pm-k by k."""

from collections.abc import Sequence
from typing import Any

from steadyeye.core.report_types import Figure, Section, Topic
from steadyeye.core.result_lookup import find
from steadyeye.core.types import Evaluated, needs
from steadyeye.metrics.testbed.published_models import why_not
from steadyeye.report.charts.specs import (
    DISTANCE,
    build_curve_table,
    chart,
    choose_drawn,
    describe_omitted,
    draw_bands,
    layer,
    lines,
    list_cells,
    shares,
)


@needs("truth", "group", "offset")
def pm_curve(evaluated: Sequence[Evaluated]) -> Section | None:
    """pm-k against the distance k, one line with its interval per model.

    None where no model has a `pm_k` result with a value. Shankar et al., Figure 11.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_predictions
        >>> print(pm_curve(example_models(example_predictions(margin=0.5))).title)
        Share of sets right on every frame within ±k
    """
    curves = [(e.predictions.model, find(e.results, "pm_k")) for e in evaluated]
    rows = [
        row
        for model, result in curves
        if result is not None and result.value is not None
        for row in list_cells(result, model=model)
    ]
    if not rows:
        return None
    models = list(dict.fromkeys(row["model"] for row in rows))
    reasons = filter(None, (why_not(model.predictions) for model in evaluated))
    return Section(
        topic=Topic.WHEN,
        place=10,
        title="Share of sets right on every frame within ±k",
        text=(
            "A set counts at distance k if the model is right on the anchor and on every frame "
            "up to k frames before and after it. Distance 0 is accuracy. The band is the 95 % "
            "interval.",
        ),
        method=tuple(f"Published models are not shown. {why}" for why in dict.fromkeys(reasons)),
        figures=(_figure(rows),),
        tables=(
            build_curve_table(
                "pm-k with 95 % intervals", rows, {model: {"model": model} for model in models}
            ),
        ),
    )


def _figure(rows: list[dict[str, Any]]) -> Figure:
    accuracies = {row["model"]: row["value"] for row in rows if row["k"] == 0}
    models = choose_drawn(accuracies)
    channels = lines(models, "model")
    place = {"x": DISTANCE, "y": shares("value", "pm-k"), **channels}
    line = layer("line", place, point=True, tooltip=True)
    band = draw_bands(len(models), x=DISTANCE, y=shares("low", "pm-k"), color=channels["color"])
    return Figure(
        name="pm_curve",
        caption="Share of sets with every frame within ±k right, with 95 % intervals."
        + describe_omitted(accuracies),
        alt=f"Lines of pm-k by k for {', '.join(models)}; the table has the values.",
        spec=chart([band, line], values=[row for row in rows if row["model"] in models]),
    )
