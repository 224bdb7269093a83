"""Results read as columns, by the fast way and entry by entry."""

import json
import tracemalloc

import numpy as np
import pytest

from steadyeye.core import disk_columns
from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage import json_lists
from steadyeye.runner import saved_detections
from steadyeye.runner.saved_entries import from_mappings, parse, read

NUMBERS = {7: 7, "name": "0007", "float": 7.0, "fraction": 7.5}


def draw(rng, n, more):
    """Results of a few images, whose ids and boxes are spelt in all ways."""
    for number in range(n):
        entry = {
            "image_id": list(NUMBERS.values())[rng.integers(0, len(NUMBERS))],
            "category_id": int(rng.integers(0, 4)),
            "bbox": [1, 2.5, float(rng.integers(0, 9)), int(rng.integers(0, 9))],
            "score": (1, 0, 0.25)[rng.integers(0, 3)],
            "segmentation": {"counts": "abc"},
        }
        yield entry | {key: f"{key} {number % 5}" for key in more}


@pytest.mark.parametrize("more", [(), ("file_name",), ("name", "file_name", "class_name")])
@pytest.mark.parametrize("n", [0, 1, 200])
def test_the_quick_and_the_plain_reader_agree(more, n):
    entries = list(draw(np.random.default_rng(n), n, more))
    if n > 1 and more:
        entries[-1].pop("file_name")  # not every entry has one
    quick, plain = parse(json.dumps(entries)), from_mappings(entries)
    for name in ("image", "category", "sides", "score", "file"):
        mine, its = getattr(quick, name), getattr(plain, name)
        assert (mine is None) == (its is None)
        assert mine is None or (mine.dtype == its.dtype and np.array_equal(mine, its))
    for name in ("image_ids", "file_names", "name_key", "names"):
        assert list(getattr(quick, name)) == list(getattr(plain, name))
    if n > 1:
        assert set(quick.image_ids) == {"7", "0007", "7.5"}
        assert quick.file is None
        assert quick.name_key == ("class_name" if "class_name" in more else "")


@pytest.mark.parametrize(
    "change",
    [
        {"bbox": [1, 2, -3, 4]},
        {"bbox": [1, 2, 3]},
        {"bbox": [True, 2, 3, 4]},
        {"score": 1.5},
        {"score": "0.5"},
        {"category_id": 1.5},
        {"image_id": None},
        {"file_name": 5},
    ],
)
def test_unusual_entries_are_left_to_the_slow_reader(change):
    (entry,) = draw(np.random.default_rng(0), 1, ())
    assert parse(json.dumps([entry])) is not None
    assert parse(json.dumps([entry, entry | change])) is None


BREAKS = ("},{", "}, {", "},\n {", "} \t,\r\n{")
TRICKS = (
    {"segmentation": {"counts": [1, 2], "size": [3, 4]}},
    {"note": "a } , { within a text"},
    {"note": 'quotes \\" and brackets ]},{"'},
    {"note": "déjà vu"},
    {},
)


@pytest.mark.parametrize("block", [64, 257, 1000, 1 << 20])
@pytest.mark.parametrize("break_", BREAKS)
def test_a_file_in_blocks_is_as_its_text(tmp_path, monkeypatch, block, break_):
    """Wherever blocks and entries end, nothing is lost, doubled or read otherwise."""
    monkeypatch.setattr(json_lists, "BLOCK", block)
    rng = np.random.default_rng(block)
    for n in (0, 1, 2, 60):
        entries = [e | TRICKS[rng.integers(0, 5)] for e in draw(rng, n, ("file_name",))]
        text = " [" + json.dumps(entries, ensure_ascii=False)[1:-1].replace("}, {", break_) + "] \n"
        path = tmp_path / "results.json"
        path.write_text(text, encoding="utf-8")
        whole, result = parse(text), read(path)
        if result is None:  # an object that one block does not hold, or a cut within a text
            assert block < 1 << 20 or "within a text" in text or "brackets" in text
            loaded = saved_detections.load(path, None)
            result = loaded.entries, loaded.fingerprint
        assert result[1] == fingerprint(text)
        assert_same(result[0], whole)


def assert_same(entries, other):
    """All columns are equal, to the last bit."""
    for name in ("image", "category", "sides", "score", "file"):
        mine, its = getattr(entries, name), getattr(other, name)
        assert (mine is None) == (its is None)
        assert mine is None or (mine.dtype == its.dtype and mine.tobytes() == its.tobytes())
    for name in ("image_ids", "file_names", "name_key", "names"):
        assert list(getattr(entries, name)) == list(getattr(other, name))


def test_most_files_are_read_in_blocks(tmp_path, monkeypatch):
    """A block holds several entries, some with masks: the text as a whole is never held."""
    monkeypatch.setattr(json_lists, "BLOCK", 1000)
    entries = [e | TRICKS[0] for e in draw(np.random.default_rng(0), 300, ())]
    for text in (json.dumps(entries), json.dumps(entries, indent=1)):
        (tmp_path / "results.json").write_text(text)
        entries_, mark = read(tmp_path / "results.json")
        assert mark == fingerprint(text)
        assert_same(entries_, parse(text))


ENTRY = json.dumps(next(draw(np.random.default_rng(0), 1, ()))).encode()
FAULTY = {
    "a comma at the end": b"[" + ENTRY + b"," + ENTRY + b",]",
    "no comma": b"[" + ENTRY + ENTRY + b"]",
    "no end": b"[" + ENTRY + b"," + ENTRY,
    "more behind it": b"[" + ENTRY + b"," + ENTRY + b"] 1",
    "two lists": b"[" + ENTRY + b"][" + ENTRY + b"]",
    "an object": b'{"a": ' + ENTRY + b"}",
    "nothing": b"",
    "a zero": b"[" + ENTRY + b",\0" + ENTRY + b"]",
    "no UTF-8": b"[" + ENTRY[:-1] + b', "note": "\xff"},' + ENTRY + b"]",
}


@pytest.mark.parametrize("fault", FAULTY)
@pytest.mark.parametrize("block", [100, 1 << 20])
def test_a_faulty_file_is_refused_as_a_whole_one_is(tmp_path, monkeypatch, fault, block):
    monkeypatch.setattr(json_lists, "BLOCK", block)
    path = tmp_path / "results.json"
    path.write_bytes(FAULTY[fault])
    assert read(path) is None
    with pytest.raises(UsageError):
        saved_detections.load(path, None)


@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16"])
def test_marks_of_editors_are_no_part_of_a_file(tmp_path, coding):
    text = json.dumps(list(draw(np.random.default_rng(0), 20, ())))
    path = tmp_path / "results.json"
    path.write_text(text, encoding=coding)
    loaded = saved_detections.load(path, None)
    assert loaded.fingerprint == fingerprint(text)
    assert_same(loaded.entries, parse(text))


@pytest.mark.slow
@pytest.mark.parametrize(("large", "most"), [(1 << 20, 52 + 32 + 10), (10_000, 10)])
def test_reading_holds_columns_and_a_block(tmp_path, monkeypatch, large, most):
    """52 bytes a detection, those of its longest column twice, and what one block decodes to.

    On the disk the columns take no memory.
    """
    monkeypatch.setattr(json_lists, "BLOCK", 10_000)
    monkeypatch.setattr(disk_columns, "LARGE", large)
    monkeypatch.setattr(json_lists, "PIECE", 1000)
    n = 20_000
    path = tmp_path / "results.json"
    path.write_text(json.dumps(list(draw(np.random.default_rng(0), n, ()))))
    read(path)
    tracemalloc.start()
    read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < most * n < path.stat().st_size
