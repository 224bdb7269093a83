"""The user's detectors on natural adversarial objects, compared with published ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from steadyeye.core.boxes import OOD
from steadyeye.core.claims import Claim, above, below, every, first
from steadyeye.core.format import format_share, number_of, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.storage.text_files import read_shipped
from steadyeye.core.types import Evaluated, Result, needs
from steadyeye.metrics.detection.frame_ap import (
    ap,
    by_class,
    frames,
    frames_without_ood,
    measure_by_class,
    recall,
    relative_drop,
    select_counted_rows,
)
from steadyeye.metrics.detection.iou_thresholds import IOUS
from steadyeye.report.charts.specs import PALETTE, chart, dot, map_names, names_of

DATA = Path(__file__).resolve().parent / "data" / "published_nao.csv"
CAUTION = (
    "mAP over IoU 0.50 to 0.95. Published values: Lau et al., “Natural Adversarial Objects”, 2021, "
    "Table 2, measured on the NAO set of the paper, which may differ from yours; their drop is "
    "from COCO val (YOLOv3: from test-dev). The interval of a drop assumes that the two sets "
    "share no image."
)

NO_REFERENCE = (
    "For the relative drop, run the model on reference data too, such as COCO val: add another "
    "--data to the job, or another run to the report."
)
OBJECTS = "on these objects, relative to the reference"
ROW = 26


@dataclass(frozen=True)
class PublishedDetector:
    """A published detector, shares 0…1. `reference`: mAP on `of`, COCO val or else test-dev."""

    model: str
    plain: float
    without: float
    recall: float
    reference: float
    of: str

    @property
    def drop(self) -> float:
        """The relative drop from the reference mAP, Figure 1."""
        return 1 - self.plain / self.reference


@cache
def read_published() -> tuple[PublishedDetector, ...]:
    """The published detectors, in the order of the paper's table."""

    def share(line: Mapping[str, str], key: str) -> float:
        return float(line[key]) / 100

    detectors = []
    for line in read_shipped(DATA):
        key = "coco_val_map" if line["coco_val_map"] else "coco_test_dev_map"
        of = "COCO val" if line["coco_val_map"] else "COCO test-dev"
        plain, without = share(line, "nao_map"), share(line, "nao_map_without_ood")
        shares = (plain, without, share(line, "nao_mar"), share(line, key))
        detectors.append(PublishedDetector(line["model"], *shares, of))
    return tuple(detectors)


@dataclass(frozen=True, eq=False)
class Scores:
    """A model on the set; each number over IoU 0.50 … 0.95, with its classes as `cells`.

    `drops`: reference set → mAP there and the relative drop.
    """

    model: str
    plain: Result
    without: Result
    recall: Result
    drops: dict[str, tuple[Result, Result]]


@needs("boxes", "detections")
def published_nao(evaluated: Sequence[Evaluated]) -> Section | None:
    """mAP, mAP without OOD and mAR with seven published detectors, and the drop from a reference.

    Over IoU 0.50 … 0.95, as COCO's. The reference is every other data of the report on which the
    same model was run and which holds no object outside the classes. None unless the data has
    boxes labelled as such, or is the source `nao`. Lau et al., Table 2 and Figure 1.
    """
    if not _about(evaluated[0].predictions):
        return None
    scores = [_scores(model) for model in evaluated]
    claim = first(_claims(scores))
    own = [row for item in scores for row in _rows(item)]
    beside = [
        (
            *(f"{item.model}, published", *map(percent, (item.plain, item.without, item.recall))),
            *(item.of, percent(item.reference), percent(item.drop)),
        )
        for item in read_published()
    ]
    header = ("model", "mAP", "mAP without OOD", "mAR", "reference", "mAP on the reference", "drop")
    return Section(
        topic=Topic.COMPARED,
        place=20,
        title=claim.text if claim else _question(scores),
        claim=claim,
        text=(
            *map(_describe_scores, scores),
            *(() if all(item.drops for item in scores) else (NO_REFERENCE,)),
            CAUTION,
        ),
        tables=(
            Table("Natural adversarial objects", header, (*own, *beside), open=True),
            *map(_classes, scores),
        ),
        figures=(_figure(scores),) if any(item.drops for item in scores) else (),
    )


def _about(predictions: Predictions) -> bool:
    boxes, name = predictions.boxes, predictions.data.partition(" #")[0].partition("-")[0]
    return boxes is not None and (name == "nao" or bool((boxes.label == OOD).any()))


def _scores(model: Evaluated) -> Scores:
    predictions = model.predictions
    rows, classes = select_counted_rows(predictions), predictions.classes
    plain = measure_by_class(frames(predictions, rows), ap(IOUS))
    without = measure_by_class(frames_without_ood(predictions, rows), ap(IOUS))
    recalls = measure_by_class(frames(predictions, rows), recall)
    drops = {}
    for other in filter(_is_reference, model.other_datasets):
        reference = measure_by_class(frames(other, select_counted_rows(other)), ap(IOUS))
        value = by_class("map", reference, other.classes)
        drops[other.data] = value, relative_drop(plain.whole, reference.whole)
    return Scores(
        predictions.model,
        by_class("map", plain, classes),
        by_class("map_without_ood", without, classes),
        by_class("mar", recalls, classes),
        drops,
    )


def _is_reference(predictions: Predictions) -> bool:
    columns = predictions.columns
    boxed = {"boxes", "detections"} <= set(columns) and "operator" not in columns
    return boxed and not _about(predictions)


def _share(value: float | None) -> str:
    return percent(value).replace("-", "−")


def _format_drop(drop: Result) -> str:
    """A drop with its interval, which may reach below 0."""
    if drop.low is None or drop.high is None:
        return _share(drop.value)
    return f"{_share(drop.value)} ({_share(drop.low)} to {_share(drop.high)})"


def _rows(scores: Scores) -> list[tuple[str, ...]]:
    own = (scores.model, *map(format_share, (scores.plain, scores.without, scores.recall)))
    if not scores.drops:
        return [(*own, "—", "—", "—")]
    return [
        (*own, name, format_share(value), _format_drop(drop))
        for name, (value, drop) in scores.drops.items()
    ]


def _classes(scores: Scores) -> Table:
    results = (scores.plain, scores.without, scores.recall)
    columns = [{cell.name: cell for cell in result.cells} for result in results]
    body = tuple(
        (
            cell.name,
            f"{cell.n:,}",
            *(format_share(c[cell.name]) if cell.name in c else "—" for c in columns),
        )
        for cell in scores.plain.cells
    )
    header = ("class", "objects", "AP", "AP without OOD", "recall")
    return Table(f"{scores.model}: class by class", header, body)


def _claims(scores: Sequence[Scores]) -> list[Claim]:
    """The claims of the title about the drops: all of several must be clear."""
    known = [(scored.model, drop) for scored in scores for _, drop in scored.drops.values()]
    drops = [(model, drop) for model, drop in known if drop.value is not None]
    if not drops:
        return []
    values = [drop.value or 0.0 for _, drop in drops]
    if len(drops) == 1:
        ((model, drop),) = drops
        begin = f"{model} has an mAP {percent(abs(values[0]))}"
        return [above(f"{begin} lower {OBJECTS}", drop), below(f"{begin} higher {OBJECTS}", drop)]
    text = f"mAP is {_share(min(values))} to {_share(max(values))} lower {OBJECTS}"
    return [every(text, [above(text, drop) for _, drop in drops])]


def _question(scores: Sequence[Scores]) -> str:
    if any(drop.value is not None for scored in scores for _, drop in scored.drops.values()):
        return "Is mAP lower on natural adversarial objects than on the reference data?"
    return "Natural adversarial objects, compared with published detectors"


def _describe_scores(scores: Scores) -> str:
    """The results of a model on the set, in one or two sentences."""
    text = (
        f"{scores.model} has an mAP of {format_share(scores.plain)} on "
        f"{number_of(scores.plain.n, 'image')}, and of {format_share(scores.without)} if "
        "detections on objects of classes that it does not have (OOD) are not counted as false "
        "positives."
    )
    for name, (value, drop) in scores.drops.items():
        text += (
            f" On {name} it has {format_share(value)} on {number_of(value.n, 'image')}: a "
            f"relative drop of {_format_drop(drop)}"
        )
        if drop.low is None or drop.high is None:
            text += ", without an interval."
        else:
            text += "; no clear difference." if drop.low <= 0 <= drop.high else "."
    return text


def _figure(scores: Sequence[Scores]) -> Figure:
    several = len({name for scored in scores for name in scored.drops}) > 1
    values: list[dict[str, Any]] = [
        {
            "model": f"{scored.model}, {name}" if several else scored.model,
            **{"of": "yours", "drop": drop.value, "low": drop.low, "high": drop.high},
        }
        for scored in scores
        for name, (_, drop) in scored.drops.items()
        if drop.value is not None
    ]
    values += [
        {"model": detector.model, "of": "published", "drop": detector.drop}
        for detector in read_published()
    ]
    values.sort(key=lambda row: -row["drop"])
    return Figure(
        name="nao_drop",
        caption="Relative drop in mAP from the reference data, and 95 % intervals of your models.",
        alt="Relative drops in mAP: your models and seven published detectors.",
        spec=chart(layers([row["model"] for row in values]), ROW * len(values) + 10, values=values),
    )


def layers(models: Sequence[str]) -> list[dict[str, Any]]:
    """A line over each interval, and a dot at every drop."""
    x = {
        "type": "quantitative",
        "title": "relative drop in mAP",
        "axis": {"format": ".0%", "tickCount": 5},
    }
    y = names_of("model", list(models), labelLimit=150, ticks=False)
    legend = {"title": None, "orient": "bottom"}
    hue = map_names("of", ["yours", "published"], [PALETTE[1], PALETTE[6]], legend)
    line = {
        "mark": {"type": "rule", "strokeWidth": 3},
        "transform": [{"filter": "isValid(datum.low)"}],
        "encoding": {"y": y, "x": {"field": "low", **x}, "x2": {"field": "high"}, "color": hue},
    }
    point = dot({"y": y, "x": {"field": "drop", **x}, "color": hue}, size=90, tooltip=True)
    return [line, point]
