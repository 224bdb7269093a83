"""Tags that only some rows have are stored, and read as missing in the others."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

import steadyeye as se
from steadyeye.core import disk_columns
from steadyeye.core.errors import SampleError
from steadyeye.core.types import Classes, Sample
from steadyeye.predictions import schema

CLASSES = Classes(("dark", "light"), closed=True)


def measure_image(image):
    """A tag of each type that is not among those of the sample."""
    value = int(image[0, 0, 0])
    return {
        "value": value,
        "half": value / 2,
        "text": f"v{value}",
        "pair": np.array([value, 1], dtype=np.float32),
    }


@dataclass(frozen=True)
class Broken:
    """Images of which some cannot be decoded."""

    bad: frozenset
    n: int = 40
    name: str = "broken"
    classes: Classes = CLASSES
    columns: tuple = ("truth",)
    notes: tuple = ()

    @property
    def fingerprint(self):
        return f"broken {sorted(self.bad)}"

    @property
    def ids(self):
        return [f"{i:02d}" for i in range(self.n)]

    @property
    def truths(self):
        return [(0,)] * self.n

    def missing(self):
        return ()

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        def decode():
            if i in self.bad:
                raise SampleError(f"cannot decode {i}")
            return np.full((8, 8, 3), i, dtype=np.uint8)

        return Sample(self.ids[i], decode, (0,), tags={"number": i}, measure=measure_image)


def tell_darkness(images):
    return np.tile(np.float32([0.9, 0.1]), (len(images), 1))


@pytest.mark.parametrize("bad", [{3}, {0, 39}, set(range(20))])
def test_a_sample_that_is_skipped_lacks_what_is_measured_of_the_others(bad, tmp_path):
    # of a shard of 16 the whole may fail: its table then has no such column
    options = {"batch": 4, "on_error": "skip", "cache": "off"}
    run = se.evaluate(tell_darkness, Broken(frozenset(bad)), out=tmp_path / "run", **options)
    table = run.predictions
    failed = np.isin(np.arange(40), list(bad))
    assert ((table.errors != "") == failed).all()
    assert table.tags["number"].tolist() == list(range(40))
    for name in ("value", "half", "pair"):
        assert (np.isnan(table.tags[name]).reshape(40, -1).all(axis=1) == failed).all(), name
    assert table.tags["value"][~failed].tolist() == [i for i in range(40) if i not in bad]
    assert table.tags["pair"].shape == (40, 2)
    assert ((table.tags["text"] == "") == failed).all()
    assert run.accuracy().n == 40 - len(bad)


@pytest.mark.parametrize("classes", [0, 1, 7, 80])
@pytest.mark.parametrize("piece", [1, 3, 4096])
def test_labels_are_read_in_pieces_and_from_the_disk(monkeypatch, piece, classes):
    """Of several shards, rows without a label among them."""
    monkeypatch.setattr(schema, "PIECE", piece)
    monkeypatch.setattr(disk_columns, "LARGE", 1)
    rng = np.random.default_rng(classes)
    labels = [rng.permutation(classes)[: rng.integers(0, 4)].tolist() for _ in range(20)]
    shards = [pa.array(part, pa.list_(pa.int32())) for part in (labels[:1], [], labels[1:8])]
    shards.append(pa.array(labels, pa.list_(pa.int32()))[8:])
    truth = schema.membership(pa.chunked_array(shards), classes)
    assert (truth.shape, truth.dtype) == ((20, classes), np.bool_)
    assert [np.flatnonzero(row).tolist() for row in truth] == [sorted(own) for own in labels]
