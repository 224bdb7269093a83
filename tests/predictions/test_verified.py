"""Verified classes and hierarchies: sealed, read back and selected; cells without them."""

import json

import numpy as np
import pytest

from steadyeye.core.boxes import boxes, select_verified
from steadyeye.core.review_filter import rows
from steadyeye.core.types import Classes, Sample
from steadyeye.models.backends.callable_detector import callable_detector
from steadyeye.predictions.read import cells, read
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent, run
from steadyeye.runner.validate import of_objects

CLASSES = Classes(("animal", "dog", "guide dog"), None, ((), (0,), (0, 1)))
LISTS = ((2, 0, 2), None, (), (1,))


class VerifiedSource:
    """Four images of one dog each, of which other classes were verified."""

    name, classes, fingerprint, notes = "listed", CLASSES, "f", ()
    columns = ("truth", "boxes", "verified")
    ids = ("a", "b", "c", "d")
    truths = ((1,),) * 4

    def missing(self):
        return []

    def __len__(self):
        return 4

    def __getitem__(self, index):
        def image():
            return np.zeros((20, 30, 3), np.uint8)

        truth = boxes([[1, 1, 9, 9]], [1])
        return Sample(self.ids[index], image, (1,), boxes=truth, verified=LISTS[index])


class Complete(VerifiedSource):
    """The same images, of which every class was verified and no class stands above another."""

    classes = Classes(CLASSES.names)
    columns = ("truth", "boxes")

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return Sample(sample.id, sample.image, sample.truth, boxes=sample.boxes)


def dogs(images):
    return [([[1, 1, 9, 9]], [0.9], [1]) for _ in images]


@pytest.fixture
def seal_source(tmp_path):
    """A function: a source → the cell of a detector of dogs on it."""
    (tmp_path / "dogs.txt").write_text("\n".join(CLASSES.names))
    model = callable_detector(path="test_verified:dogs", classes=str(tmp_path / "dogs.txt"))
    out = tmp_path / "run"

    def seal(source):
        job = Job(models=("dogs",), data=("listed",), out=str(out))
        run(of_objects(job, [model], [("listed", source)]), Silent())
        return cells(out)[0]

    return seal


def test_verified_classes_and_parents_come_back_as_they_were(seal_source):
    predictions = read(*seal_source(VerifiedSource()))
    assert predictions.parents == CLASSES.parents
    verified = predictions.verified
    assert verified.image.tolist() == [0, 0, 3]
    assert verified.label.tolist() == [0, 2, 1]
    assert verified.known.tolist() == [True, False, True, True], "an empty list is a list"
    assert (verified.image.dtype, verified.label.dtype) == (np.int64, np.int64)


def test_complete_data_without_hierarchy_says_neither_and_its_cell_is_as_before(seal_source):
    folders = seal_source(Complete())
    assert "parents" not in json.loads((folders[0] / "cell.json").read_text())["data"]
    predictions = read(*folders)
    assert predictions.parents is None
    assert predictions.verified is None


def test_selected_rows_keep_what_was_verified_in_them(seal_source):
    verified = rows(read(*seal_source(VerifiedSource())), np.array([3, 2, 0])).verified
    assert verified.image.tolist() == [0, 2, 2]
    assert verified.label.tolist() == [1, 0, 2]
    assert verified.known.tolist() == [True, True, True]
    none = select_verified(verified, np.array([], dtype=np.intp))
    assert (len(none), len(none.known)) == (0, 0)
