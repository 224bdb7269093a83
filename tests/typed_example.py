"""What a user's own script may hold: checked by `mypy --strict`, run by test_python."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import steadyeye as se


def light(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Scores by the light of the picture."""
    bright = images.reshape(len(images), -1).mean(axis=1) / 255
    return np.stack([bright, 1 - bright], axis=1).astype(np.float32)


def steady(source: str, out: str) -> Sequence[se.Result]:
    """The numbers of the model above on the data that a spec names."""
    run: se.Run = se.evaluate(light, source, out=out)
    one: se.Result = run.flip_rate()
    predictions: se.Predictions = run.predictions
    assert len(predictions) == len(predictions.ids)
    section = run.analyses.timeline()
    assert section is None or section.title
    return [one, run.self_consistency(k=1), run.confidence_jump()]
