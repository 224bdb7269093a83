"""Accuracy, pm-k and drop by the frame rate of the video."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steadyeye.core.format import format_unsigned_points, list_some
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.report_types import Section, Topic
from steadyeye.core.types import Evaluated, needs
from steadyeye.report.subsets import Loss, PublishedLosses, distance, loss, show_losses

DATA = Path(__file__).resolve().parent / "data" / "published_fps.csv"
NAMES = {rate: f"{rate} fps" for rate in ("25", "29", "30")}
PUBLISHED = PublishedLosses(
    DATA, "fps", NAMES, "videos", "Grey: ImageNet-Vid-Robust, Shankar et al., Table 8."
)


@needs("truth", "group", "offset", "fps")
def frame_rates(evaluated: Sequence[Evaluated]) -> Section | None:
    """Accuracy, pm-k and drop of the videos of each native frame rate.

    Rates are cut to whole frames a second, as in the paper's table: 29.97 is 29. None where all
    videos have the same rate. Shankar et al., Table 8, is shown for comparison.
    """
    losses = [row for entry in evaluated for row in _losses(entry)]
    parts = list(dict.fromkeys(row.part for row in losses))
    if len(parts) < 2:
        return None
    spread = {
        model: [row.drop.value or 0.0 for row in losses if row.model == model]
        for model in dict.fromkeys(row.model for row in losses)
    }
    ranges = [
        f"{model} {format_unsigned_points(min(drops))} to {format_unsigned_points(max(drops))}"
        for model, drops in spread.items()
    ]
    texts = ("Accuracy and pm-k by native frame rate, with 95 % intervals.", "rate")
    bars, listing = show_losses(evaluated[0], losses, PUBLISHED, "frame_rates", texts)
    return Section(
        topic=Topic.SURE,
        place=62,
        title="Accuracy and pm-k by frame rate",
        text=(
            "The higher the frame rate, the less a scene changes within ±k frames. Smallest and "
            "largest drop in percentage points: "
            f"{list_some(ranges)}. Videos with different "
            "frame rates differ in other ways too, and overlapping intervals show no clear "
            "order.",
        ),
        figures=(bars,),
        tables=(listing,),
    )


def _losses(model: Evaluated) -> list[Loss]:
    predictions = model.predictions
    sets = pm_sets(predictions)
    # a container may say 24.9999 for 25; 29.97 is far enough from 30
    rates = np.floor(np.asarray(predictions.tags["fps"], dtype=np.float64) + 1e-3).astype(np.int64)
    k = distance(model, sets)
    return [
        loss(predictions.model, f"{rate} fps", pm_sets(predictions, rates == rate), k)
        for rate in np.unique(rates[sets.anchors])
    ]
