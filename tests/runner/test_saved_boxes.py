"""Notes on the boxes of a file, in pieces of its images, against all of them at once."""

from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest

from steadyeye.core import disk_columns
from steadyeye.core.errors import UsageError
from steadyeye.runner import saved_boxes, saved_entries
from steadyeye.runner.saved_entries import SavedEntries


def draw(rng, n, images):
    """Entries of few different numbers, so that some stand there twice, and the image of each."""
    image = rng.integers(0, images, n).astype(np.int32)
    return SavedEntries(
        [str(i) for i in range(images)],
        image,
        rng.integers(0, 2, n),
        rng.choice([-0.0, 0.0, 1.5], (n, 4)),
        rng.choice([0.0, -0.0, 0.5], n),
    ), image


@pytest.mark.parametrize("piece", [1, 7, 20_000])
@pytest.mark.parametrize("seed", range(5))
def test_entries_by_sample_and_in_pieces(monkeypatch, piece, seed):
    monkeypatch.setattr(saved_entries, "PIECE", piece)
    monkeypatch.setattr(disk_columns, "PIECE", piece)
    monkeypatch.setattr(disk_columns, "LARGE", 1 if seed % 3 else 1 << 20)
    rng = np.random.default_rng(seed)
    samples = 12
    sample = rng.integers(-1, samples - 2, int(rng.integers(0, 60))).astype(np.int32)
    if seed % 2:
        sample.sort()
    entries, _ = draw(rng, len(sample), 3)
    grouping = entries.group_by_sample(sample, samples)
    of = [[i for i, s in enumerate(sample.tolist()) if s == number] for number in range(samples)]
    assert [grouping.of(number).tolist() for number in range(samples)] == of
    assert grouping.samples.tolist() == [number for number in range(samples) if of[number]]
    parts = list(grouping.split())
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == samples
    for part in parts:
        mine = of[part]
        assert grouping.counts(part).tolist() == list(map(len, mine))
        assert grouping.places(part).tolist() == list(chain.from_iterable(mine))
        assert part.stop == part.start + 1 or sum(map(len, mine)) <= piece


@pytest.mark.parametrize("piece", [1, 7, 20_000])
@pytest.mark.parametrize("seed", range(5))
def test_doubles_are_counted_as_pair_by_pair(monkeypatch, piece, seed):
    """Of the same image, category, box and score: all but the first."""
    monkeypatch.setattr(saved_entries, "PIECE", piece)
    rng = np.random.default_rng(seed)
    entries, image = draw(rng, 200, 4)
    # two ids may be of one sample: their entries are not the same ones
    grouping = entries.group_by_sample(image // 2, 2)
    rows = [
        (*row, *box, score)
        for row, box, score in zip(
            zip(image.tolist(), entries.category.tolist(), strict=True),
            entries.sides.tolist(),
            entries.score.tolist(),
            strict=True,
        )
    ]
    more = len(rows) - len(set(rows))
    (note,) = saved_boxes.doubles(entries, grouping)
    assert more > 0
    assert note.startswith(f"{more} of 200 detections in the file twice")


def is_refused_as_corners(sides, image, sizes):
    """Whether boxes are x0 y0 x1 y1, by the definition of `check_sides`."""
    known = [i for i in range(len(sides)) if sizes[image[i]]]
    for i in known:
        height, width = sizes[image[i]]
        x0, y0, x1, y1 = sides[i]
        if not (x0 <= x1 <= width + 1 and y0 <= y1 <= height + 1):
            return False
    out = sum(
        sides[i][0] + sides[i][2] > sizes[image[i]][1] + 1
        or sides[i][1] + sides[i][3] > sizes[image[i]][0] + 1
        for i in known
    )
    return len(known) >= 10 and out >= len(known) / 10


@pytest.mark.parametrize("piece", [1, 7, 20_000])
def test_corners_for_sides_are_refused_as_box_by_box(monkeypatch, piece):
    monkeypatch.setattr(saved_entries, "PIECE", piece)
    refused = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, images = int(rng.integers(1, 30)), 4
        sizes = [(50, 60) if rng.random() < 0.8 else None for _ in range(images)]
        image = rng.integers(0, images, n).astype(np.int32)
        start = rng.uniform(0, 40, (n, 2))
        sides = np.hstack([start, start + rng.uniform(0, 10, (n, 2))])
        if seed % 3 == 0:  # one is none as corners
            sides[rng.integers(0, n), 2] = 0
        entries = SavedEntries([], image, np.zeros(n, np.int64), sides, np.ones(n))
        source = [SimpleNamespace(size=size) for size in sizes]
        grouping = entries.group_by_sample(image, images)
        if is_refused_as_corners(sides.tolist(), image.tolist(), sizes):
            refused += 1
            with pytest.raises(UsageError, match="none as x0, y0, x1, y1"):
                saved_boxes.check_sides(entries, grouping, source, "results")
        else:
            saved_boxes.check_sides(entries, grouping, source, "results")
    assert 10 < refused < 50


@pytest.mark.parametrize("place", [0, 20_001])
def test_one_box_beyond_a_pixel_settles_that_boxes_are_no_shares(place):
    sides = np.full((20_002, 4), 0.25)
    entries = SavedEntries([], np.zeros(20_002, np.int32), sides[:, 0], sides, sides[:, 0])
    grouping = entries.group_by_sample(entries.image, 1)
    source = [SimpleNamespace(size=None)]
    with pytest.raises(UsageError, match="shares of the image"):
        saved_boxes.check_sides(entries, grouping, source, "results")
    sides[place, 3] = 8
    saved_boxes.check_sides(entries, grouping, source, "results")
