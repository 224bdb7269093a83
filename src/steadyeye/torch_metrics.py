"""pm-k and the flip rate as metrics of `torchmetrics`, for use while a model is trained.

The numbers are those of `steadyeye run` on the same answers: the rows are gathered and given to the
same functions. Rows may come in any order and batches, and from several processes.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.imports import library
from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result
from steadyeye.metrics.flip_rate import flip_rate
from steadyeye.metrics.pm_k import pm_k

library("torchmetrics")  # first, as it says what is wrong where torchvision is of another torch
import torchmetrics  # noqa: E402

NOT_PREDICTED = -1


class _Gathered(torchmetrics.Metric):
    """A metric that keeps one whole number a row and column."""

    full_state_update = False
    is_differentiable = False

    def __init__(self, num_classes: int, columns: tuple[str, ...], **settings: Any) -> None:
        super().__init__(**settings)
        if num_classes < 1:
            raise UsageError(f"num_classes is {num_classes}; give the number of classes")
        self.num_classes, self.columns = num_classes, columns
        for name in columns:
            self.add_state(name, default=[], dist_reduce_fx="cat")

    def _add(self, preds: torch.Tensor, **numbers: torch.Tensor) -> None:
        """Keeps rows. Raises `UsageError` where a column has another length than `preds`."""
        rows = {"answer": self._choose(preds)} | numbers
        for name in self.columns:
            values = torch.as_tensor(rows[name]).flatten().to(torch.int64)
            if len(values) != len(preds):
                counts = f"{len(values):,} rows, preds {len(preds):,}"
                raise UsageError(f"{name} has {counts}; give one each")
            getattr(self, name).append(values.to(self.device))

    def _choose(self, preds: torch.Tensor) -> torch.Tensor:
        """The class of each row: the first of the highest scores; −1 where a score is NaN."""
        if preds.ndim == 1 and not preds.is_floating_point():
            return preds
        if preds.ndim != 2 or preds.shape[1] != self.num_classes:
            raise UsageError(
                f"preds has the shape {tuple(preds.shape)}; give (n, {self.num_classes}) scores or "
                "(n,) classes as whole numbers"
            )
        best = preds.eq(preds.amax(dim=1, keepdim=True)).to(torch.uint8).argmax(dim=1)
        return torch.where(preds.isnan().any(dim=1), NOT_PREDICTED, best)

    def _gather(self) -> dict[str, NDArray[np.int64]]:
        """All rows, by column; empty where there are none."""
        nothing = torch.zeros(0, dtype=torch.int64, device=self.device)
        gathered = {}
        for name in self.columns:
            # once the states of several processes are gathered it is one tensor
            parts = getattr(self, name)
            parts = [parts] if isinstance(parts, torch.Tensor) else parts
            gathered[name] = torch.cat([nothing, *parts]).cpu().numpy()
        return gathered

    def _build_predictions(
        self,
        answer: NDArray[np.int64],
        groups: NDArray[np.int64],
        truth: NDArray[np.int64],
        tags: dict[str, NDArray[np.int64]],
    ) -> Predictions:
        """The rows as predictions; `truth`: (n,) classes, −1: no label."""
        n = len(answer)
        names = tuple(f"class {i}" for i in range(self.num_classes))
        labels = np.zeros((n, self.num_classes), dtype=np.bool_)
        known = truth >= 0
        labels[np.flatnonzero(known), truth[known]] = True
        failed = answer == NOT_PREDICTED
        return Predictions(
            model="model",
            data="data",
            classes=names,
            model_classes=names,
            columns=("truth", "group", *tags),
            ids=np.arange(n).astype(np.str_),
            groups=groups.astype(np.str_),
            truth=labels,
            scores=np.zeros((n, 0), dtype=np.float32),
            top=np.zeros((n, 0), dtype=np.int32),
            top_scores=np.zeros((n, 0), dtype=np.float32),
            errors=np.where(failed, "not predicted", ""),
            tags=tags,
            stored={
                "predicted": np.where(failed, -1, answer),
                "confidence": np.where(failed, np.nan, 1.0).astype(np.float32),
            },
        )

    def result(self) -> Result:
        """The number with its interval, as that metric of a run gives it."""
        raise NotImplementedError

    def compute(self) -> torch.Tensor:
        """The number, 0…1; NaN where there is none."""
        value = self.result().value if len(getattr(self, self.columns[0])) else None
        return torch.tensor(float("nan") if value is None else value, dtype=torch.float64)


class PmK(_Gathered):
    """The share of anchors whose every frame within ±k is right, as `steadyeye.metrics.pm_k`.

    `num_classes`: of the scores. `k`: frames; the largest offset that comes if left out.

    Example, two sets of three frames, the last of which has a wrong neighbour:

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
        super().__init__(num_classes, ("answer", "sets", "target", "offsets", "videos"), **settings)
        self.k = k

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
        `sets`: (n,) a number for each pm-set. `offsets`: (n,) frames from the anchor, which has 0.
        `videos`: (n,) a number for each video, by which the interval of `result` is clustered; the
        sets if left out. Raises `UsageError` for shapes that do not fit, and targets that are no
        class.
        """
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.num_classes:
            raise UsageError(f"target has a class outside 0…{self.num_classes - 1}; leave it out")
        others = {"sets": sets, "target": target, "offsets": offsets}
        self._add(preds, **others, videos=sets if videos is None else videos)

    def result(self) -> Result:
        """pm-k with its interval; its cells are pm-0 … pm-k."""
        rows = self._gather()
        tags = {"offset": rows["offsets"], "video": rows["videos"]}
        predictions = self._build_predictions(rows["answer"], rows["sets"], rows["target"], tags)
        return pm_k(predictions, self.k)


class FlipRate(_Gathered):
    """The share of consecutive frames whose top-1 class changes, as `steadyeye.metrics.flip_rate`.

    Example, four frames of a video with one change:

        >>> import torch
        >>> metric = FlipRate(num_classes=3)
        >>> metric.update(torch.tensor([0, 0, 1, 1]), torch.zeros(4), torch.arange(4))
        >>> round(metric.compute().item(), 3)
        0.333
    """

    higher_is_better = False

    def __init__(self, num_classes: int, **settings: Any) -> None:
        super().__init__(num_classes, ("answer", "videos", "frames"), **settings)

    def update(self, preds: torch.Tensor, videos: torch.Tensor, frames: torch.Tensor) -> None:
        """Adds n frames.

        `preds`: (n, num_classes) scores or (n,) classes, −1: not predicted. `videos`: (n,) a number
        for each video without a cut. `frames`: (n,) numbers of the frames; those one apart are
        consecutive. Raises `UsageError` for shapes that do not fit.
        """
        self._add(preds, videos=videos, frames=frames)

    def result(self) -> Result:
        """The flip rate with its interval."""
        rows = self._gather()
        unlabelled = np.full(len(rows["answer"]), -1, dtype=np.int64)
        tags = {"frame": rows["frames"], "video": rows["videos"]}
        return flip_rate(self._build_predictions(rows["answer"], rows["videos"], unlabelled, tags))
