"""The user's detectors compared with published ones."""

from collections.abc import Sequence
from pathlib import Path

from steadyeye.core.format import format_share, format_unsigned_points, percent
from steadyeye.core.report_types import Section, Table, Topic
from steadyeye.core.result_lookup import find, read_k
from steadyeye.core.storage.text_files import read_shipped
from steadyeye.core.types import Evaluated, needs
from steadyeye.metrics.testbed.published_models import why_not

DATA = Path(__file__).resolve().parent / "data" / "published_detection.csv"
TASKS = {"pm_k_map": "detection", "localization": "localization"}


@needs("boxes", "detections", "group", "offset")
def published_detectors(evaluated: Sequence[Evaluated]) -> Section | None:
    """The mAP of anchors and worst frames and the drop, compared with three published detectors.

    Published on ImageNet-Vid-Robust at k = 10. None where no model has `pm_k_map`. Shankar et
    al., Table 3.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections, example_models
        >>> print(published_detectors(example_models(example_detections())).title)
        Anchors and worst frames
    """
    own = [row for model in evaluated for row in _rows(model)]
    if not own:
        return None
    results = [find(model.results, name) for model in evaluated for name in TASKS]
    k = next((read_k(result) for result in results if result is not None), None)
    why = why_not(evaluated[0].predictions, k)
    header = ("task", "model", "anchors", "worst frame", "drop (pp)", "data")
    rows = (*own, *(() if why else _read_published()))
    return Section(
        topic=Topic.COMPARED,
        place=23,
        title="Anchors and worst frames" if why else "Compared with published detectors",
        text=(
            f"Published detectors are not shown. {why}"
            if why
            else "The published values are from ImageNet-Vid-Robust, not from your data: "
            "compare the drops, not the values.",
        ),
        tables=(Table("mAP of anchors and worst frames", header, rows),),
    )


def _rows(model: Evaluated) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, task in TASKS.items():
        result = find(model.results, name)
        if result is None or result.value is None or result.cells[0].value is None:
            continue
        plain = result.cells[0]
        rows.append(
            (
                task,
                model.predictions.model,
                format_share(plain),
                format_share(result),
                format_unsigned_points((plain.value or 0) - result.value),
                model.predictions.data,
            )
        )
    return rows


def _read_published() -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            line["task"],
            f"{line['model']}, published",
            *(percent(float(line[key]) / 100) for key in ("map_original", "map_perturbed")),
            format_unsigned_points(float(line["map_drop"]) / 100),
            "ImageNet-Vid-Robust" + (f"; {line['note']}" if line["note"] else ""),
        )
        for line in read_shipped(DATA)
    )
