"""Notes on sealed predictions as they are read."""

import numpy as np

import steadyeye as se

DATA = [(np.full((4, 4, 3), level, np.uint8), "light") for level in range(0, 200, 2)]


def read_notes(highest, count):
    """The notes of a run on 100 images, in `count` of which the other class is as high."""

    def predict(images):
        levels = images[:, 0, 0, 0].astype(float)
        return np.stack(
            [np.where(levels < 2 * count, highest, 0), np.full(len(images), highest)], 1
        )

    run = se.evaluate(predict, DATA, classes=["dark", "light"])
    assert run.accuracy().value == 1 - count / 100
    return [note for note in run.predictions.notes if "the highest score" in note]


def test_highest_scores_that_classes_share_are_noted():
    """They count for the class that the list names first: of a constant, one class is always right.

    Such scores come from a sigmoid in half precision, or are of few bits.
    """
    (note,) = read_notes(1.0, 40)
    assert note.startswith("of 40 of 100 samples several classes have the highest score, and the")
    assert read_notes(1.0, 1)
    assert not read_notes(1.0, 0)
