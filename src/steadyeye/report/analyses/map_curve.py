"""pm-k mAP and localization by k."""

from collections.abc import Sequence
from typing import Any

from steadyeye.core.report_types import Figure, Section, Topic
from steadyeye.core.result_lookup import find
from steadyeye.core.types import Evaluated, needs
from steadyeye.report.charts.specs import (
    DISTANCE,
    build_curve_table,
    chart,
    draw_bands,
    draw_crossed,
    line_colour,
    list_cells,
    shares,
)

METRICS = {"pm_k_map": "pm-k mAP", "localization": "localization"}


@needs("boxes", "detections", "group", "offset")
def map_curve(evaluated: Sequence[Evaluated]) -> Section | None:
    """The mAP of the worst frames within ±k against k, also with all classes merged into one.

    None where no model has either result with a value. Shankar et al., Table 3.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections, example_models
        >>> print(map_curve(example_models(example_detections())).title)
        mAP on the worst frame within ±k
    """
    rows = [
        row
        for entry in evaluated
        for name, title in METRICS.items()
        if (result := find(entry.results, name)) and result.value is not None
        for row in list_cells(result, model=entry.predictions.model, metric=title)
    ]
    if not rows:
        return None
    models = list(dict.fromkeys(row["model"] for row in rows))
    return Section(
        topic=Topic.WHEN,
        place=9,
        title="mAP on the worst frame within ±k",
        text=(
            "The worst frame is the frame within ±k of the anchor on which the detector does "
            "worst. Distance 0 is the anchor itself. Localization merges all classes into one, "
            "so it counts missed and misplaced objects but no wrong classes. A detection of a "
            "real object without a label counts as a false positive in both.",
        ),
        figures=(_figure(rows, models),),
        tables=(
            build_curve_table(
                "mAP over the worst frames, with 95 % intervals",
                rows,
                {
                    f"{model}: {metric}": {"model": model, "metric": metric}
                    for model in models
                    for metric in METRICS.values()
                },
            ),
        ),
    )


def _figure(rows: list[dict[str, Any]], models: list[str]) -> Figure:
    hue = line_colour(models, "model")
    low, detail = shares("low", "mAP"), {"field": "metric"}
    band = draw_bands(2 * len(models), x=DISTANCE, y=low, color=hue, detail=detail)
    place = {"x": DISTANCE, "y": shares("value", "mAP")}
    crossed = draw_crossed(models, "metric", list(METRICS.values()), place)
    return Figure(
        name="map_curve",
        caption="mAP over the worst frames within ±k, with classes and with all classes merged.",
        alt=f"Lines of pm-k mAP and localization by k for {', '.join(models)}.",
        spec=chart([band, *crossed], values=rows),
    )
