"""What a probe is given, and what it gives."""

from collections.abc import Callable
from dataclasses import dataclass

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Detector, Model, Sample, Source
from steadyeye.explain.mining.causes import SCORE
from steadyeye.explain.targets import Target

Sealed = Callable[[str, Source], Predictions]
"""`(name, source) -> Predictions`: what the detector says of a source, sealed in the same run."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A detector on data, and the detections to be explained: mistakes first, then the control.

    `predictions`, `reference_predictions`: as sealed, row i of them being sample i of `source` and
    `reference`; both None without a reference, where the control is from the data itself. `score`:
    above it a detection is confident.
    """

    model: Detector
    source: Source
    predictions: Predictions
    reference: Source | None
    reference_predictions: Predictions | None
    targets: tuple[Target, ...]
    seed: int
    sealed: Sealed
    score: float = SCORE

    def sample(self, target: Target) -> Sample:
        """The sample a target was found in, with its image as it is."""
        if target.cause or self.reference is None:
            return self.source[target.row]
        return self.reference[target.row]


@dataclass(frozen=True, eq=False)
class Probe:
    """A source of changed images; `model`: who is asked, where it is not the detector itself.

    `shard`: rows a shard, where a row takes long and little should be lost when it is stopped.
    """

    source: Source
    model: Model | Detector | None = None
    shard: int | None = None
