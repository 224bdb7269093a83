"""pm-k, the flip rate and frame AP as metrics of `torchmetrics`, for use during training.

The numbers are those of `steadyeye run` on the same predictions: the rows are gathered and passed
to the same functions. Rows may come in any order and batches, and from several processes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, Detections, detection_table, truth_table
from steadyeye.core.boxes import boxes as make_boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Result
from steadyeye.data.python_boxes import BoxRow, read_boxes
from steadyeye.metrics.flip_rate import flip_rate
from steadyeye.metrics.map import map as mean_ap
from steadyeye.metrics.pm_k import pm_k
from steadyeye.metrics.pm_k_map import pm_k_map
from steadyeye.torch_rows import GatheredMetric, build_predictions, read_whole_numbers

NO_SET = torch.iinfo(torch.int64).min
"""The set number of an image without a set."""
OF_IMAGES = ("sets", "offsets", "videos", "detections", "targets")
OF_DETECTIONS = ("corners", "labels", "scores")
OF_OBJECTS = ("true_corners", "true_labels", "crowds", "true_areas")
"""The columns of images, of detections, and of true objects."""


class PmK(GatheredMetric):
    """The share of anchors whose every frame within ±k is right, as `steadyeye.metrics.pm_k`.

    `num_classes`: of the scores. `k`: frames; by default the largest offset of the rows.

    Example with two sets of three frames, the second of which has a wrong neighbour:

        >>> import torch
        >>> metric = PmK(num_classes=3, k=1)
        >>> metric.update(
        ...     preds=torch.tensor([0, 0, 0, 2, 2, 1]),
        ...     target=torch.tensor([0, 0, 0, 2, 2, 2]),
        ...     sets=torch.tensor([0, 0, 0, 1, 1, 1]),
        ...     offsets=torch.tensor([-1, 0, 1, -1, 0, 1]),
        ... )
        >>> metric.compute().item()
        0.5
    """

    higher_is_better = True

    def __init__(self, num_classes: int, k: int | None = None, **settings: Any) -> None:
        columns = ("answer", "sets", "target", "offsets", "videos")
        super().__init__(num_classes, columns, k, **settings)

    def update(
        self,
        preds: torch.Tensor,
        target: torch.Tensor,
        sets: torch.Tensor,
        offsets: torch.Tensor,
        videos: torch.Tensor | None = None,
    ) -> None:
        """Adds n frames.

        `preds`: (n, num_classes) scores or (n,) classes, −1: not predicted. `target`: (n,) classes.
        `sets`: (n,) the number of each pm-set. `offsets`: (n,) frames from the anchor, which has 0.
        `videos`: (n,) the number of each video, by which the interval of `result` is clustered; by
        default the sets. Raises `UsageError` for wrong shapes, and targets that are no class.
        """
        labels = read_whole_numbers(target, "target")
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < self.num_classes:
            raise UsageError(f"target has a class outside 0…{self.num_classes - 1}; leave it out")
        others = {"sets": sets, "target": labels, "offsets": offsets}
        self.add(preds, **others, videos=sets if videos is None else videos)

    def result(self) -> Result:
        """pm-k with its interval; its cells are pm-0 … pm-k."""
        rows = self.gather()
        tags = {"offset": rows["offsets"], "video": rows["videos"]}
        predictions = build_predictions(
            self.num_classes, rows["answer"], rows["sets"], rows["target"], tags
        )
        return pm_k(predictions, self.k)


class FlipRate(GatheredMetric):
    """The share of consecutive frames whose top-1 class changes, as `steadyeye.metrics.flip_rate`.

    Example with four frames of a video and one change:

        >>> import torch
        >>> metric = FlipRate(num_classes=3)
        >>> metric.update(torch.tensor([0, 0, 1, 1]), torch.zeros(4), torch.arange(4))
        >>> round(metric.compute().item(), 3)
        0.333
    """

    higher_is_better = False

    def __init__(self, num_classes: int, **settings: Any) -> None:
        super().__init__(num_classes, ("answer", "videos", "frames"), None, **settings)

    def update(self, preds: torch.Tensor, videos: torch.Tensor, frames: torch.Tensor) -> None:
        """Adds n frames.

        `preds`: (n, num_classes) scores or (n,) classes, −1: not predicted. `videos`: (n,) the
        number of each video without a cut. `frames`: (n,) frame numbers; frames are consecutive if
        these differ by one. Raises `UsageError` for wrong shapes.
        """
        self.add(preds, videos=videos, frames=frames)

    def result(self) -> Result:
        """The flip rate with its interval."""
        rows = self.gather()
        unlabelled = np.full(len(rows["answer"]), -1, dtype=np.int64)
        tags = {"frame": rows["frames"], "video": rows["videos"]}
        return flip_rate(
            build_predictions(self.num_classes, rows["answer"], rows["videos"], unlabelled, tags)
        )


class FrameAP(GatheredMetric):
    """The mAP over the frame of lowest AP within ±k of each anchor, as `metrics.pm_k_map`.

    Without sets every image is its own set, and the result is the mAP, as `metrics.map`.
    `num_classes`: of the labels. `k`: frames; by default the largest offset of the rows. `iou`: 0.5
    … 0.95, or "coco", the mean over all ten.

    Example with one image of two objects, one of them detected:

        >>> import torch
        >>> metric = FrameAP(num_classes=2)
        >>> corners, labels = torch.tensor([[0.0, 0, 9, 9], [20, 20, 40, 40]]), torch.arange(2)
        >>> first = {"boxes": corners[:1], "scores": torch.tensor([0.9]), "labels": labels[:1]}
        >>> metric.update([first], [{"boxes": corners, "labels": labels}])
        >>> metric.compute().item()
        0.5
    """

    higher_is_better = True

    def __init__(
        self,
        num_classes: int,
        k: int | None = None,
        iou: float | str = 0.5,
        **settings: Any,
    ) -> None:
        super().__init__(num_classes, (*OF_IMAGES, *OF_DETECTIONS, *OF_OBJECTS), k, **settings)
        self.iou = iou

    def update(
        self,
        preds: Sequence[Mapping[str, torch.Tensor]],
        target: Sequence[Mapping[str, torch.Tensor]],
        sets: torch.Tensor | None = None,
        offsets: torch.Tensor | None = None,
        videos: torch.Tensor | None = None,
    ) -> None:
        """Adds n images.

        `preds`: for each, `boxes` (m, 4) x0 y0 x1 y1 in pixels, `scores` and `labels`, (m,), as
        torchvision returns them. `target`: for each, `boxes` and `labels`, and optionally `iscrowd`
        and `area`. `sets`: (n,) the number of each pm-set, with `offsets`: (n,) frames from the
        anchor, which has 0. `videos`: (n,) the number of each video, by which the interval of
        `result` is clustered. Raises `UsageError` for invalid inputs.
        """
        n = len(preds)
        answers = [read_boxes(dict(entry), f"preds[{i}]") for i, entry in enumerate(preds)]
        objects = [read_boxes(dict(entry), f"target[{i}]") for i, entry in enumerate(target)]
        columns = self._number_images(n, sets, offsets, videos)
        # without images the tensor would be float32
        columns["targets"] = torch.tensor([len(row.labels) for row in objects], dtype=torch.int64)
        columns["detections"] = torch.tensor([len(r.labels) for r in answers], dtype=torch.int64)
        for name, values in columns.items():
            if len(values) != n:
                counts = f"{len(values):,} rows, preds {n:,}"
                raise UsageError(f"{name.removesuffix('s')} has {counts}; give one each")
        columns |= self._list_detections(answers) | self._list_objects(objects)
        for name, values in columns.items():
            getattr(self, name).append(values.to(self.device))

    def _number_images(
        self,
        n: int,
        sets: torch.Tensor | None,
        offsets: torch.Tensor | None,
        videos: torch.Tensor | None,
    ) -> dict[str, torch.Tensor]:
        if (sets is None) != (offsets is None):
            raise UsageError("give sets and offsets, or neither: then every image counts")
        alone = torch.full((n,), NO_SET)
        groups = alone if sets is None else read_whole_numbers(sets, "sets")
        clips = groups if videos is None else read_whole_numbers(videos, "videos")
        distances = alone if offsets is None else read_whole_numbers(offsets, "offsets")
        return {"sets": groups, "offsets": distances, "videos": clips}

    def _list_detections(self, rows: Sequence[BoxRow]) -> dict[str, torch.Tensor]:
        without = [i for i, row in enumerate(rows) if row.scores is None]
        if without:
            raise UsageError(f"preds[{without[0]}] has no scores; give one for each box")
        for i, row in enumerate(rows):
            if row.scores is not None and np.isnan(row.scores).any():
                raise UsageError(f"preds[{i}] has a score that is no number; correct it")
        return {
            "corners": _stack([row.corners for row in rows]).reshape(-1, 4),
            "scores": _stack([row.scores for row in rows if row.scores is not None]),
            "labels": self._stack_labels([row.labels for row in rows], "preds"),
        }

    def _list_objects(self, rows: Sequence[BoxRow]) -> dict[str, torch.Tensor]:
        images = [make_boxes(r.corners, [0] * len(r.labels), r.crowd, r.area) for r in rows]
        return {
            "true_corners": _stack([objects.boxes for objects in images]).reshape(-1, 4),
            "true_areas": _stack([objects.area for objects in images]),
            "crowds": _stack([objects.crowd for objects in images]).to(torch.int64),
            "true_labels": self._stack_labels([row.labels for row in rows], "target"),
        }

    def _stack_labels(self, labels: Sequence[Sequence[int | str]], name: str) -> torch.Tensor:
        numbers = [label for row in labels for label in row]
        for label in numbers:
            if isinstance(label, str) or not 0 <= label < self.num_classes:
                raise UsageError(
                    f"{name} has the label {label!r}; give a class of 0…{self.num_classes - 1}"
                )
        return torch.tensor(numbers, dtype=torch.int64)

    def result(self) -> Result:
        """The number with its interval."""
        columns = self.gather()
        n = len(columns["sets"])
        split = np.cumsum(columns["detections"])[:-1]
        answers = [
            Detections(corners.reshape(-1, 4), labels.astype(np.int32), scores)
            for corners, labels, scores in zip(
                *(np.split(columns[name], split) for name in OF_DETECTIONS), strict=True
            )
        ]
        split = np.cumsum(columns["targets"])[:-1]
        objects: list[Boxes] = [
            make_boxes(corners.reshape(-1, 4), labels.astype(np.int64), crowd != 0, area)
            for corners, labels, crowd, area in zip(
                *(np.split(columns[name], split) for name in OF_OBJECTS), strict=True
            )
        ]
        in_sets = bool((columns["sets"] != NO_SET).any())
        if in_sets and (columns["sets"] == NO_SET).any():
            raise UsageError("some images came with sets and others without; give them to all")
        tags = {"video": columns["videos"]} if in_sets else {}
        tags |= {"offset": columns["offsets"]} if in_sets else {}
        groups = columns["sets"] if in_sets else np.arange(n)
        unlabelled = np.full(n, -1, dtype=np.int64)
        answer = np.zeros(n, dtype=np.int64)
        table = build_predictions(self.num_classes, answer, groups, unlabelled, tags)
        table = replace(
            table,
            columns=("boxes", "detections", *(("group", *tags) if in_sets else ())),
            groups=table.groups if in_sets else np.full(n, "", dtype=np.str_),
            boxes=truth_table(objects),
            detections=detection_table(answers),
        )
        return pm_k_map(table, self.k, self.iou) if in_sets else mean_ap(table, self.iou)


def _stack(parts: Sequence[NDArray[Any]]) -> torch.Tensor:
    flat = [np.zeros(0), *(np.asarray(part, dtype=np.float64).ravel() for part in parts)]
    return torch.from_numpy(np.concatenate(flat))
