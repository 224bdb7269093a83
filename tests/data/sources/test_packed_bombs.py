"""Tars and Parquet files in which few bytes declare very many."""

import io
import os
import resource
import tarfile

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.storage import tar_index
from steadyeye.data.images.image_file import VARIABLE
from steadyeye.data.sources.hf_dataset import hf_dataset
from steadyeye.data.sources.webdataset import webdataset

PICTURE = cv2.imencode(".png", np.full((8, 8, 3), 9, np.uint8))[1].tobytes()
FEW = 64 << 10
"""KB of memory, 64 MB, that the reading of a bomb may take."""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def memory():
    """What gives the KB that the process has taken beyond what it ever had before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


def write_tar(path, suffix, size, claim=None, kind=tarfile.REGTYPE):
    """A tar of two samples, of which the second has a file of `size` bytes that are holes.

    `claim`: what its header says instead. `kind`: of its header.
    """
    with tarfile.open(path, "w") as archive:
        for name, content in (("a.png", PICTURE), ("b.png", PICTURE)):
            if name != f"b.{suffix}":
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        start = archive.offset
        entry = tarfile.TarInfo(f"b.{suffix}")
        entry.size = size if claim is None else claim
        entry.type = kind
        archive.fileobj.write(entry.tobuf(tarfile.GNU_FORMAT))
    end = start + 512 + -(-size // 512) * 512
    with path.open("r+b") as file:
        file.truncate(start + 512)
        file.truncate(end + 1024)
    return str(path)


@pytest.mark.parametrize("suffix", ["cls", "json"])
def test_labels_of_a_tar_are_not_read_whatever_their_size(suffix, tmp_path, memory):
    path = write_tar(tmp_path / "a.tar", suffix, 1 << 30)
    assert os.stat(path).st_blocks < 1000  # the disk holds none of it
    with pytest.raises(UsageError, match=rf"'b\.{suffix}' of 1,073,741,824 bytes") as error:
        webdataset(path)
    assert len(str(error.value).splitlines()) == 1
    assert memory() < FEW


def test_a_picture_of_a_tar_is_not_read_whatever_its_size(tmp_path, memory, monkeypatch):
    path = write_tar(tmp_path / "a.tar", "png", 1 << 31)
    monkeypatch.setenv(VARIABLE, "1000000")
    source = webdataset(path)
    assert source[0].image().mean() == 9
    with pytest.raises(
        SampleError, match=r"a\.tar:b' is larger than the largest image that is read"
    ):
        source[1].image()
    assert memory() < FEW


HEADERS = (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE)


@pytest.mark.parametrize("claim", [1 << 30, 8 << 30, 2**63, 2**80, -1, -512, -1024, -(2**62)])
@pytest.mark.parametrize("kind", ["cls", "json", "png", *HEADERS])
def test_a_size_that_a_tar_does_not_have_is_refused(kind, claim, tmp_path, memory):
    header = kind if kind in HEADERS else tarfile.REGTYPE
    suffix = "cls" if kind in HEADERS else kind
    path = write_tar(tmp_path / "a.tar", suffix, 1024, claim, header)
    with pytest.raises(UsageError, match=r"a\.tar'"):
        list(tar_index.list_entries(tmp_path / "a.tar"))
    with pytest.raises(UsageError, match=r"a\.tar'"):
        webdataset(path)
    assert memory() < FEW


def write_parquet(path, image, label, rows):
    """A Parquet file in which each row repeats one image and one label; a kB or so."""
    zeros = pa.array([0] * rows, pa.int32())
    images = pa.DictionaryArray.from_arrays(zeros, pa.array([image]))
    paths = pa.array([None] * rows, pa.string())
    table = {
        "image": pa.StructArray.from_arrays([images, paths], ["bytes", "path"]),
        "label": pa.DictionaryArray.from_arrays(zeros, pa.array([label])),
    }
    pq.write_table(pa.table(table), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 20_000
    return str(path)


def test_repeated_values_of_a_parquet_file_are_stored_once(tmp_path, memory):
    names = tmp_path / "names.txt"
    label = "cat" * 300_000
    names.write_text(f"{label}\ndog\n")
    image = PICTURE + bytes(4 << 20)
    path = write_parquet(tmp_path / "train.parquet", image, label, 2_000)  # 10 GB of repetitions
    source = hf_dataset(path, classes=str(names))
    assert len(source) == 2_000
    assert source.truths[1_999] == (0,)
    assert source[1_999].image().mean() == 9
    assert memory() < 2 * FEW


@pytest.mark.slow
@pytest.mark.parametrize("column", ["image", "label"])
def test_a_column_that_unpacks_to_gigabytes_is_refused(column, tmp_path, memory):
    values = {"image": PICTURE, "label": "cat", column: bytes(300 << 20)}
    if column == "label":
        values["label"] = "x" * (300 << 20)
    path = tmp_path / "train.parquet"
    pq.write_table(
        pa.table({name: [value] for name, value in values.items()}),
        path,
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
    )
    del values
    assert path.stat().st_size < 100_000
    with pytest.raises(UsageError, match=rf"the column '{column}' of .* unpacks to 31\d,") as error:
        hf_dataset(str(path), classes="imagenet1k")
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_labels_of_texts_are_those_that_rows_have(kind, tmp_path):
    texts = ["dog", None, "cat", "dog"]
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    labels = pa.array(texts, pa.string())
    if pa.types.is_dictionary(kind):
        places = pa.array([2, None, 0, 2], pa.int8())
        labels = pa.DictionaryArray.from_arrays(places, pa.array(["cat", "no class", "dog"]))
    table = pa.table({"image": [PICTURE] * 4, "label": labels.cast(kind)})
    pq.write_table(table, tmp_path / "train.parquet", row_group_size=3)
    source = hf_dataset(str(tmp_path), classes=str(tmp_path / "names.txt"))
    assert list(source.truths) == [(1,), (), (0,), (1,)]
    assert [source[i].image().mean() for i in range(4)] == [9] * 4
