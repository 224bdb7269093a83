"""Data read from the Hugging Face Hub at hf://, its calls answered by a server on loopback."""

import hub_server
import pytest
from packed_toys import build, count_images, hub, packed, parquet, picture, same

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import place

__all__ = ["hub", "packed"]


@pytest.fixture
def at(hub, packed, tmp_path, monkeypatch):
    """What is asked of a Hub that has three datasets."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for i in range(6):
        file = tmp_path / "sorted" / ("dark" if i < 3 else "light") / f"{i}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture(40 * i))
    datasets = {"me/hub": hub, "me/tars": packed, "me/sorted": tmp_path / "sorted"}
    with hub_server.server(datasets) as requests:
        yield requests


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("hf_dataset(path='{}')", "hub"),
        ("hf_dataset(path='{}', split='test')", "hub"),
        ("webdataset(urls='{}')", "tars"),
        ("image_folder(root='{}')", "sorted"),
    ],
)
def test_a_data_set_on_the_hub_equals_the_one_on_the_disk(at, tmp_path, kind, name):
    same(build(kind.format(tmp_path / name)), build(kind.format(f"hf://datasets/me/{name}")))
    assert {method for method, *_ in at} <= {"GET", "HEAD", "POST"}


def test_a_second_run_reads_no_image_and_asks_nothing(at, tmp_path):
    data, cache = "hf_dataset(path='hf://datasets/me/hub')", tmp_path / "answers"
    assert count_images(data, tmp_path / "a", cache) == 50
    at.clear()
    build(data)
    opening = sum("/resolve/" in path for _, path, _ in at)
    at.clear()
    assert count_images(data, tmp_path / "b", cache) == 0
    assert sum("/resolve/" in path for _, path, _ in at) == opening, "footers and labels alone"


def test_a_changed_file_is_another_key(at, hub, tmp_path):
    data, changed = "hf_dataset(path='hf://datasets/me/hub')", hub / "data"
    before = build(data)
    parquet(changed / "train-00001-of-00002.parquet", range(101, 201, 4))
    with hub_server.server({"me/hub": hub}):
        after = build(data)
        assert after.ids[30] == before.ids[30]
        assert after[3].key() == before[3].key()
        assert after[30].key() != before[30].key()


def test_an_absent_data_set_on_the_hub_is_refused_in_one_line(at):
    for url in ("hf://datasets/me/none", "hf://datasets/me/hub/none"):
        with pytest.raises(UsageError, match=f"no file or folder at '{url}'") as error:
            build(f"hf_dataset(path='{url}')")
        assert "\n" not in str(error.value)
    with pytest.raises(FileNotFoundError):
        place("hf://datasets/me/hub/data/none.parquet").read_bytes()
