"""Confident mistakes as columns, and each as an object on request."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD
from steadyeye.core.disk_columns import read_entries
from steadyeye.core.predictions import Predictions
from steadyeye.data.annotations import coco_file
from steadyeye.explain.mining.causes import CAUSES, Judged

OUTSIDE = "OOD object"

ON_OBJECT = (CAUSES.index("misclassification"), CAUSES.index("out_of_distribution"))
"""Causes of mistakes that overlap a true box."""


@dataclass(frozen=True)
class Mistake:
    """A confident mistake, represented by its most confident detection.

    `table`: the index of that detection's table; `row`: its image there; `detection`: its row in
    `raw_detections`; `object`: the row in `boxes` of the true box with the largest overlap, −1 for
    none. `box`: x0 y0 x1 y1 in pixels. `predicted`: the detector's class; `truth`: the class of the
    object, empty without one; `annotated`: the same under the detector's name, if it has the class.
    `models`: all models that make the mistake, in the order of the tables; `times`: its number of
    detections, over models and frames.
    """

    table: int
    row: int
    detection: int
    object: int
    sample: str
    box: tuple[float, float, float, float]
    predicted: str
    truth: str
    annotated: str
    score: float
    iou: float
    cause: str
    models: tuple[str, ...]
    times: int


@dataclass(frozen=True, eq=False)
class Mistakes:
    """The n mistakes of some tables as columns, by falling score, from which objects are built.

    `tables`, `verdicts`: the tables and their judged detections. `table`: (n,) the table of the
    most confident detection of each; `place`: (n,) its index in the verdicts; `times`: (n,) as in
    `Mistake`; `makers`: (n,) the models that make it, an index into `models`. `cause`: (n,) an
    index into `CAUSES`; `truth`, `predicted`: (n,) as in `Mistake`, indices into `names`. All
    columns are int32.
    """

    tables: Sequence[Predictions]
    verdicts: Sequence[Judged]
    table: NDArray[np.int32]
    place: NDArray[np.int32]
    times: NDArray[np.int32]
    makers: NDArray[np.int32]
    models: Sequence[tuple[str, ...]]
    cause: NDArray[np.int32]
    truth: NDArray[np.int32]
    predicted: NDArray[np.int32]
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rank: int) -> Mistake:
        return self.build(np.array([range(len(self))[rank]]))[0]

    def build(self, ranks: NDArray[np.integer]) -> list[Mistake]:
        """The mistakes at some distinct indices in the order of scores."""
        built: dict[int, Mistake] = {}
        for table in np.unique(self.table[ranks]).tolist():
            own = ranks[self.table[ranks] == table]
            built |= zip(own.tolist(), self._describe(table, own), strict=True)
        return [built[rank] for rank in ranks.tolist()]

    def _describe(self, table: int, ranks: NDArray[np.integer]) -> Iterator[Mistake]:
        """The mistakes whose most confident detections are of one table."""
        predictions, judged = self.tables[table], self.verdicts[table]
        raw, truth = predictions.raw_detections, predictions.boxes
        assert raw is not None, "judged"
        assert truth is not None, "judged"
        detection, objects, iou = (
            read_entries(column, self.place[ranks])
            for column in (judged.detection, judged.object, judged.iou)
        )
        image, boxes, score = (
            read_entries(column, detection) for column in (raw.image, raw.boxes, raw.score)
        )
        columns = ranks, detection, objects, image, boxes, score, iou
        for rank, row, item, at, box, confidence, share in zip(
            *(values.tolist() for values in columns), strict=True
        ):
            cause, annotated = int(self.cause[rank]), ""
            if cause in ON_OBJECT:
                annotated = _name_as_detector(predictions, int(truth.label[item]))
            where = table, at, row, item, str(predictions.ids[at]), tuple(box)
            words = self.names[self.predicted[rank]], self.names[self.truth[rank]], annotated
            several = self.models[self.makers[rank]], int(self.times[rank])
            yield Mistake(*where, *words, confidence, share, CAUSES[cause], *several)


def list_mistakes(
    tables: Sequence[Predictions],
    verdicts: Sequence[Judged],
    ranked: Sequence[NDArray[np.int32]],
    models: Sequence[tuple[str, ...]],
) -> Mistakes:
    """The mistakes with their causes and classes.

    `ranked`: `table`, `place`, `times` and `makers` of `Mistakes`, with `models`.
    """
    table, place, times, makers = ranked
    numbers = {"": 0, OUTSIDE: 1}
    cause, truth, predicted = np.zeros((3, len(table)), dtype=np.int32)
    for number, (predictions, judged) in enumerate(zip(tables, verdicts, strict=True)):
        own = np.flatnonzero(table == number)
        raw, boxes = predictions.raw_detections, predictions.boxes
        assert raw is not None, "judged"
        assert boxes is not None, "judged"
        of_data, of_model = (
            np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int32)
            for names in ((*predictions.classes, OUTSIDE), predictions.model_classes)
        )
        detection, objects, cause[own] = (
            read_entries(column, place[own])
            for column in (judged.detection, judged.object, judged.cause)
        )
        predicted[own] = of_model[read_entries(raw.label, detection)]
        on_object = np.isin(cause[own], ON_OBJECT)
        # the label of an object outside the classes is −1, the last of these
        truth[own[on_object]] = of_data[read_entries(boxes.label, objects[on_object])]
    of_detections = table, place, times, makers, models
    return Mistakes(tables, verdicts, *of_detections, cause, truth, predicted, tuple(numbers))


def name_of(predictions: Predictions, label: int) -> str:
    """The class of a true box in words."""
    return OUTSIDE if label == OOD else predictions.classes[label]


def _name_as_detector(predictions: Predictions, label: int) -> str:
    """The class of a true box, under the detector's name if it has the class."""
    own = predictions.model_to_data_class
    if label == OOD:
        return coco_file.OUTSIDE
    same = [] if own is None else np.flatnonzero(own == label).tolist()
    return predictions.model_classes[same[0]] if len(same) == 1 else name_of(predictions, label)
