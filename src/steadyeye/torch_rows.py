"""The shared base of the `torchmetrics` metrics: columns of rows, of all batches and processes."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.imports import library
from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result

library("torchmetrics")  # first, because its error explains a torchvision built for another torch
import torchmetrics  # noqa: E402

NOT_PREDICTED = -1
EXACT = {"corners": (0, 4), "true_corners": (0, 4), "scores": (0,), "true_areas": (0,)}
"""The columns of float64, and their shapes without rows; all others are (0,) int64."""


class GatheredMetric(torchmetrics.Metric):
    """A metric that gathers columns of rows, of all batches and processes.

    `k`: frames from the anchor that its number needs, None for all.
    """

    full_state_update = False
    is_differentiable = False

    def __init__(
        self, num_classes: int, columns: tuple[str, ...], k: int | None, **settings: Any
    ) -> None:
        super().__init__(**settings)
        if num_classes < 1:
            raise UsageError(f"num_classes is {num_classes}; give the number of classes")
        self.num_classes, self.columns, self.k = num_classes, columns, k
        self.is_one_batch = False
        for name in columns:
            self.add_state(name, default=[], dist_reduce_fx="cat")

    def add(self, preds: torch.Tensor, **numbers: torch.Tensor) -> None:
        """Adds rows. Raises `UsageError` if a column and `preds` have different lengths."""
        answer = self._choose(torch.as_tensor(preds))
        rows = {name: read_whole_numbers(values, name) for name, values in numbers.items()}
        for name, values in rows.items():
            if len(values) != len(answer):
                counts = f"{len(values):,} rows, preds {len(answer):,}"
                raise UsageError(f"{name} has {counts}; give one each")
        for name, values in (rows | {"answer": answer.to(torch.int64)}).items():
            getattr(self, name).append(values.to(self.device))

    def _choose(self, preds: torch.Tensor) -> torch.Tensor:
        """The class of each row: the first of the highest scores; −1 where a score is NaN."""
        if preds.ndim == 1 and not preds.is_floating_point():
            if len(preds) and not -1 <= int(preds.min()) <= int(preds.max()) < self.num_classes:
                raise UsageError(
                    f"preds has a class outside 0…{self.num_classes - 1}; give −1 where there is "
                    "no prediction"
                )
            return preds
        if preds.ndim != 2 or preds.shape[1] != self.num_classes:
            raise UsageError(
                f"preds has the shape {tuple(preds.shape)}; give (n, {self.num_classes}) scores or "
                "(n,) classes as whole numbers"
            )
        best = preds.eq(preds.amax(dim=1, keepdim=True)).to(torch.uint8).argmax(dim=1)
        return torch.where(preds.isnan().any(dim=1), NOT_PREDICTED, best)

    def gather(self) -> dict[str, NDArray[Any]]:
        """All rows, by column; empty without rows.

        After the states of several processes are gathered each is one tensor.
        """
        states = {name: getattr(self, name) for name in self.columns}
        parts = {n: [s] if isinstance(s, torch.Tensor) else list(s) for n, s in states.items()}
        return {
            name: np.asarray(torch.cat(some or [self._make_empty(name)]).cpu().numpy())
            for name, some in parts.items()
        }

    def _make_empty(self, name: str) -> torch.Tensor:
        """A column without rows."""
        kind = torch.float64 if name in EXACT else torch.int64
        return torch.zeros(EXACT.get(name, (0,)), dtype=kind, device=self.device)

    def sync(self, *args: Any, **settings: Any) -> None:
        """Gathers the rows of all processes.

        torchmetrics returns float32 for a process without rows, which stops the processes with
        int64.
        """
        for name in self.columns:
            if not len(getattr(self, name)):
                setattr(self, name, [self._make_empty(name)])
        super().sync(*args, **settings)

    def set_dtype(self, dst_type: str | torch.dtype) -> "GatheredMetric":
        """The unchanged metric: frame numbers and boxes would not be exact in half precision."""
        return self

    def forward(self, *args: Any, **numbers: Any) -> Any:
        """Adds rows. Returns the number of these rows alone, NaN if they do not reach ±k."""
        self.is_one_batch = True
        try:
            return super().forward(*args, **numbers)
        finally:
            self.is_one_batch = False

    def result(self) -> Result:
        """The number with its interval, as that metric of a run returns it."""
        raise NotImplementedError

    def compute(self) -> torch.Tensor:
        """The number, 0…1; NaN without a value."""
        first = getattr(self, self.columns[0])
        rows = sum(map(len, [first] if isinstance(first, torch.Tensor) else first))
        value = None if not rows or self._falls_short() else self.result().value
        return torch.tensor(float("nan") if value is None else value, dtype=torch.float64)

    def _falls_short(self) -> bool:
        """Whether the rows are of one batch and do not reach ±k, which all rows together may."""
        if self.k is None or not self.is_one_batch:
            return False
        offsets = self.gather()["offsets"].astype(np.float64)  # least int64: no set
        return bool(np.abs(offsets).max(initial=0) < self.k)


def read_whole_numbers(values: Any, name: str) -> torch.Tensor:
    """(n,) int64. Raises `UsageError` for fractions, and if a type is too small to be exact."""
    numbers = torch.as_tensor(values).flatten()
    if numbers.is_floating_point():
        fractions = numbers[numbers != numbers.round()]
        if len(fractions):
            raise UsageError(f"{name} has {fractions[0].item():.3g}; give whole numbers")
        most = int(2 / torch.finfo(numbers.dtype).eps)
        if len(numbers) and numbers.abs().max() > most:
            kind = str(numbers.dtype).removeprefix("torch.")
            raise UsageError(
                f"{name} is {kind}, which does not hold every whole number above {most:,}; give "
                "int64"
            )
    return numbers.to(torch.int64)


def build_predictions(
    num_classes: int,
    answer: NDArray[np.int64],
    groups: NDArray[np.int64],
    truth: NDArray[np.int64],
    tags: dict[str, NDArray[np.int64]],
) -> Predictions:
    """The rows as predictions; `truth`: (n,) classes, −1: no label."""
    n = len(answer)
    names = tuple(f"class {i}" for i in range(num_classes))
    labels = np.zeros((n, num_classes), dtype=np.bool_)
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
