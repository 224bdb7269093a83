"""Corruption errors: how much more often a model is wrong on the corruptions of ImageNet-C.

Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations", ICLR 2019, Section 4.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.defaults import IMAGENET_C
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import bootstrap
from steadyeye.core.stats.trials import Statistic
from steadyeye.core.types import Result
from steadyeye.degradation.corruptions import SEVERITIES
from steadyeye.degradation.curves import Profiles, profiles

ALEXNET = {
    "gaussian_noise": 0.886428,
    "shot_noise": 0.894468,
    "impulse_noise": 0.922640,
    "defocus_blur": 0.819880,
    "glass_blur": 0.826268,
    "motion_blur": 0.785948,
    "zoom_blur": 0.798360,
    "snow": 0.866816,
    "frost": 0.826572,
    "fog": 0.819324,
    "brightness": 0.564592,
    "contrast": 0.853204,
    "elastic_transform": 0.646056,
    "pixelate": 0.717840,
    "jpeg_compression": 0.606500,
}
"""AlexNet's error on ImageNet-C, the mean over five severities: as published with the release."""
ALEXNET_CLEAN = 0.4348
"""AlexNet's error on the clean validation images of ImageNet."""
BASELINES = ("alexnet", "none")
OF_ALEXNET = (
    "relative to AlexNet on ImageNet-C: comparable with published values only on the validation "
    "images of ImageNet"
)


@dataclass(frozen=True, eq=False)
class CorruptionErrors:
    """The contribution of each of n images to the error of each of the fifteen corruptions.

    `errors`: (15, n), in the order of `IMAGENET_C`; their mean over corruptions and images is the
    metric. `bounds`: (15, 2) least and greatest possible value of each corruption. `notes`: the
    numbers they are comparable with. `unit`: "ratio", "share" without a baseline, or "difference"
    if values may be below 0.
    """

    sweep: Profiles
    errors: NDArray[np.float64]
    bounds: NDArray[np.float64]
    notes: tuple[str, ...]
    unit: str

    def statistic(self) -> Statistic:
        """The statistic for comparing models by the mean over corruptions."""
        least, most = self.bounds.mean(axis=0).tolist()
        return bootstrap.mean_statistic(self.errors.mean(axis=0), self.sweep.videos, (least, most))

    def result(self, name: str) -> Result:
        """The mean over corruptions, with each of them in `cells`."""
        cells = []
        for corruption, row, ends in zip(IMAGENET_C, self.errors, self.bounds, strict=True):
            bounds = (float(ends[0]), float(ends[1]))
            own = bootstrap.mean_interval(row, self.sweep.videos, bounds)
            cells.append(Result.of(corruption, own, unit=self.unit))
        notes = (*self.sweep.notes, *self.notes)
        mean = self.statistic().interval()
        return Result.of(name, mean, notes=notes, cells=tuple(cells), unit=self.unit)


def measure_corruption_errors(
    predictions: Predictions, baseline: str = "alexnet", relative: bool = False
) -> CorruptionErrors:
    """The corruption errors of a sweep over `imagenet_c` at all five severities, of all images.

    `baseline`: "alexnet", whose error each error is divided by, or "none". `relative`: how much the
    error rises from the undegraded images, over how much that of the baseline does. Raises
    `UsageError` for another baseline, and if corruptions or severities are missing.
    """
    if baseline not in BASELINES:
        raise unknown("baseline", baseline, BASELINES)
    sweep = profiles(predictions, "all")
    curves = {name: (levels, rows) for name, levels, rows in sweep.curves()}
    _refuse_missing(curves)
    clean = 1.0 - predictions.right[sweep.row[0, 0]]
    errors, bounds = [], []
    for corruption in IMAGENET_C:
        rows = curves[corruption][1][1:]
        error = 1.0 - predictions.right[rows].mean(axis=0)
        base = ALEXNET[corruption] if baseline == "alexnet" else 1.0
        if relative:
            error = error - clean
            base -= ALEXNET_CLEAN if baseline == "alexnet" else 0.0
        errors.append(error / base)
        bounds.append((-1 / base if relative else 0.0, 1 / base))
    notes = (OF_ALEXNET,) if baseline == "alexnet" else ()
    unit = "difference" if relative else "ratio" if baseline == "alexnet" else "share"
    return CorruptionErrors(sweep, np.array(errors), np.array(bounds), notes, unit)


def covers_corruptions(predictions: Predictions) -> bool:
    """Whether a sweep has the fifteen corruptions at all five severities.

    Example:
        >>> from steadyeye.testing import example_corruptions, example_sweep
        >>> covers_corruptions(example_corruptions()), covers_corruptions(example_sweep())
        (True, False)

    """
    tags = predictions.tags
    cells = set(zip(tags["operator"].tolist(), tags["level"].tolist(), strict=True))
    return cells >= {(name, level + 1) for name in IMAGENET_C for level in range(SEVERITIES)}


def _refuse_missing(curves: Mapping[str, tuple[NDArray[np.int64], NDArray[np.intp]]]) -> None:
    missing = [corruption for corruption in IMAGENET_C if corruption not in curves]
    if missing:
        raise UsageError(
            f"the sweep has no {', '.join(missing)}; a corruption error needs all fifteen: "
            "steadyeye degrade --operators imagenet_c"
        )
    for corruption in IMAGENET_C:
        levels = curves[corruption][0].tolist()
        if levels != list(range(SEVERITIES + 1)):
            raise UsageError(
                f"the sweep has {corruption} at levels {levels[1:]}; a corruption error needs 1 to "
                f"{SEVERITIES}: leave --levels out"
            )
