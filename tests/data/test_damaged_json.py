"""JSON inside and beside data that is nested too deep, cut, or of another type: one line each."""

import io
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set, ytbb_reviews
from steadyeye.data.sources import hf_dataset, imagenet_vid_robust
from steadyeye.data.sources.webdataset import webdataset
from steadyeye.review.interchange import label_studio
from steadyeye.training import lr_search

DEEP = b"[" * 100_000 + b"]" * 100_000
ODD = (DEEP, b"[1, 2", b'"caf\xe9"', b"1", b"null", b"9" * 5_000)


@pytest.mark.parametrize("content", ODD)
@pytest.mark.parametrize(
    "read",
    [
        ytbb_reviews._content,
        imagenet_vid_robust._load,
        label_studio._read_tasks,
        lambda path: lr_search._run_trial(None, None, path.parent, None, None),
    ],
)
def test_a_damaged_file_is_named(read, content, tmp_path):
    path = tmp_path / "trial.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"trial\.json") as refused:
        read(path)
    assert "\n" not in str(refused.value)


def test_an_empty_file_is_called_empty(tmp_path):
    path = tmp_path / "export.json"
    for content in ("", " \n"):
        path.write_text(content)
        with pytest.raises(UsageError, match=r"export\.json': it is empty; write it again"):
            label_studio._read_tasks(path)


@pytest.mark.parametrize("content", ODD)
def test_damaged_metadata_of_a_table_name_its_file(content, tmp_path):
    path = tmp_path / "anchors.parquet"
    schema = pa.schema([("n", pa.int64())])
    pq.write_table(pa.table({"n": [1]}, schema.with_metadata({review_set.CLASSES: content})), path)
    with pytest.raises(UsageError, match=r"anchors\.parquet"):
        review_set._sampled_classes(path)
    if content != b"null":
        with pytest.raises(UsageError, match=r"anchors\.parquet"):
            hf_dataset._read_features(path, content)


@pytest.mark.parametrize("content", [*ODD, b"[1]", b'"a"'])
def test_damaged_json_next_to_an_image_of_a_tar_names_it(content, tmp_path):
    picture = io.BytesIO()
    Image.new("RGB", (8, 8)).save(picture, "png")
    path = tmp_path / "set.tar"
    with tarfile.open(path, "w") as tar:
        for name, data in (("a.png", picture.getvalue()), ("a.json", content)):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    with pytest.raises(UsageError, match=r"a\.json") as refused:
        webdataset(str(path), classes="imagenet1k")
    assert "\n" not in str(refused.value)
