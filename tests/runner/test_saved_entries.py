"""Results read as columns, the quick way and entry by entry."""

import json

import numpy as np
import pytest

from steadyeye.runner.saved_entries import from_mappings, parse

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
def test_both_ways_are_the_same(more, n):
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
def test_what_needs_a_closer_look_is_not_read_quickly(change):
    (entry,) = draw(np.random.default_rng(0), 1, ())
    assert parse(json.dumps([entry])) is not None
    assert parse(json.dumps([entry, entry | change])) is None
