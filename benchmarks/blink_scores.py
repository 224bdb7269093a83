"""The dependence of `blink_rate` on the linking of objects, by the objects' median score.

    python benchmarks/blink_scores.py RUN [--trackers | --agree | --join]

`RUN`: the folder of a run of a detector on whole videos, `every_frame(…)`. Its objects are linked
with one constant of linking changed at a time; the definition of a gap is unchanged. Prints, for
each cell of the run and each change, `blink_rate` of all objects and of those whose detections have
a median score in a band, with the known frames and the objects of the band; and the number of boxes
above and below the threshold per frame.

`--trackers`: instead, with the trackers of `object_steadiness.py`, unchanged and with their objects
cut where they are away for more than a second or jump. Prints `blink_rate`, that of objects whose
median score is 0.7 or more, and the number of blinks per 100 pairs of consecutive detections of an
object: all, and those between detections of 0.6 or more; and the number of these blinks that all
trackers have in common.

`--agree`: instead, `blink_rate` of each tracker if a gap counts only if all settings of `SETTINGS`
link the detections before and after it, too. For a run on true tracks, also of the objects that
overlap a true one (IoU of 0.5 or more) in most of their frames.

`--join`: instead, the five numbers of objects of each tracker, and again with the objects cut where
they are away for longer than a time or jump, and joined by the best assignment of their ends, moved
on by the motion of the last or next four boxes. For a run on true tracks, also `blink_rate` of the
objects that overlap a true one.
"""

import argparse
import itertools
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
from object_steadiness import METRICS, list_linkers, mark_true

from steadyeye.core.boxes import iou
from steadyeye.metrics.detection.assignment import pair_best
from steadyeye.metrics.sequences import tracklets
from steadyeye.metrics.sequences.object_steadiness import find_blinks, find_pairs, select_steady
from steadyeye.metrics.sequences.scenes import ROUNDED
from steadyeye.metrics.sequences.tracklets import (
    DETECTED,
    GAP,
    LINK,
    SCORE,
    UNSURE,
    WEAK,
    TrackedObject,
    _linked,
    assign_frame_by_frame,
    link_by,
)
from steadyeye.predictions.read import read

CHANGES = (
    ("LINK", LINK),
    ("LINK", 0.1),
    ("LINK", 0.5),
    ("LONGEST", 0.5),
    ("SWITCH", 0.0),
    ("DUPLICATE", 0.5),
    ("DUPLICATE", 0.9),
    ("WEAK", SCORE),
)
"""Constants of linking of other trackers; the first is unchanged, and the last links without boxes
below the threshold.
"""
EDGES = (0.5, 0.6, 0.7, 1.01)
SETTINGS = (
    ("LINK", LINK),
    ("LINK", 0.1),
    ("LINK", 0.5),
    ("LONGEST", 0.5),
    ("SWITCH", 0.0),
    ("SWITCH", 0.5),
    ("SMOOTHING", 0.2),
    ("SMOOTHING", 1.0),
)
"""Constants of linking that must agree on a link; the first is unchanged."""
CONFIDENT = 0.6
"""Score of both ends of a blink that is not near the threshold."""


def measure_medians(objects, scores):
    """The median score of each object's detections above the threshold."""
    is_detected = objects.state == DETECTED
    return np.array(
        [
            np.median(scores[objects.detection[is_detected & (objects.track == track)]])
            for track in range(len(objects))
        ]
    )


def list_rates(objects, scores):
    """`blink_rate` of all objects, then of each band."""
    median = measure_medians(objects, scores)[objects.track]
    known = select_steady(objects) & (objects.state != UNSURE)
    lost = known & (objects.state != DETECTED)
    cells = [f"{lost.sum() / known.sum():.1%}"]
    for low, high in itertools.pairwise(EDGES):
        band = known & (median >= low) & (median < high)
        count = len(np.unique(objects.track[band]))
        rate = lost[band].sum() / max(band.sum(), 1)
        cells.append(f"{rate:.1%} of {band.sum()} frames of {count}")
    return cells


def link_with(table, name, value):
    """The objects of a table, linked with another value of a constant."""
    with patch.object(tracklets, name, value):
        return link_by(assign_frame_by_frame, table, table.raw_detections, SCORE)


def compare(cell):
    """The table of a cell."""
    table = read(cell)
    scores = table.raw_detections.score
    strong, weak = (scores >= SCORE).sum(), ((scores >= WEAK) & (scores < SCORE)).sum()
    print(f"{table.model} on {table.data}, {len(table)} frames:", end=" ")
    print(f"{strong / len(table):.1f} boxes a frame, {weak / len(table):.1f} weak ones")
    bands = [f"{low:g} to {min(high, 1):g}" for low, high in itertools.pairwise(EDGES)]
    print(f"| linking | all | {' | '.join(bands)} |", "|---|" + "--:|" * 4, sep="\n")
    for name, value in CHANGES:
        objects = link_with(table, name, value)
        print(f"| {name} {value:g} | {' | '.join(list_rates(objects, scores))} |")


def cut(linker, most=GAP):
    """A linker whose objects end if they are away for `most` seconds, or if their boxes jump."""

    def link(scene):
        parts = []
        for item in linker(scene):
            boxes, places = scene.raw.boxes[item.detections], np.array(item.places)
            overlap = np.array([iou(a[None], b[None])[0, 0] for a, b in itertools.pairwise(boxes)])
            ends = (np.diff(scene.seconds[places]) > most + ROUNDED / 2) | (overlap < LINK)
            for part in np.split(np.arange(len(places)), np.flatnonzero(ends) + 1):
                rows = [item.detections[place] for place in part]
                parts.append(TrackedObject(places[part].tolist(), rows, boxes[part[0]], 0, 0))
        return parts

    return link


def move(scene, item, part, time):
    """The box at an end of an object, moved to a time by the motion of the boxes of `part`."""
    places, boxes = np.array(item.places)[part], scene.raw.boxes[item.detections][part]
    centres = boxes.reshape(-1, 2, 2).mean(axis=1)
    speed = np.polyfit(scene.clock[places], centres, 1)[0] if len(places) > 1 else np.zeros(2)
    end = -1 if part.stop is None else 0
    return boxes[end] + np.tile(speed * (time - scene.clock[places[end]]), 2)


def rate_joint(scene, first, second, most):
    """How well the second of two objects continues the first, 0 where it does not."""
    end, start = first.places[-1], second.places[0]
    apart = scene.seconds[start] - scene.seconds[end]
    if not 0 < apart <= most + ROUNDED / 2:
        return 0.0
    overlap = max(
        iou(move(scene, item, part, scene.clock[place])[None], scene.raw.boxes[[row]])[0, 0]
        for item, part, place, row in (
            (first, slice(-4, None), start, second.detections[0]),
            (second, slice(0, 4), end, first.detections[-1]),
        )
    )
    return 1 + overlap - LINK * apart if overlap >= LINK else 0.0


def join(linker, most):
    """A linker whose objects are cut, and continue others that ended up to `most` seconds ago."""

    def link(scene):
        items = cut(linker, most)(scene)
        while items:
            worth = [[rate_joint(scene, a, b, most) for b in items] for a in items]
            pairs = dict(zip(*(side.tolist() for side in pair_best(np.array(worth))), strict=True))
            if not pairs:
                break
            chains = [[place] for place in range(len(items)) if place not in pairs.values()]
            for chain in chains:
                while chain[-1] in pairs:
                    chain.append(pairs[chain[-1]])
            items = [
                TrackedObject(
                    [place for part in chain for place in items[part].places],
                    [row for part in chain for row in items[part].detections],
                    items[chain[0]].box,
                    0,
                    0,
                )
                for chain in chains
            ]
        return sorted(items, key=lambda item: item.places[0])

    return link


def compare_joined(cell):
    """The table of a cell: lowest and highest of the trackers, and steadyeye's own, in %."""
    table = read(cell)
    has_truth = table.boxes is not None and len(table.boxes)
    names = [*METRICS, *(["of true objects"] if has_truth else [])]
    print(f"{table.model} on {table.data}", f"| rule | {' | '.join(names)} |", sep="\n")
    print("|---|" + "--:|" * len(names))
    rules = {"as they link": lambda linker: linker}
    for most in (GAP, 1 / 3, 0.2):
        rules[f"cut at {most:.2g} s"] = partial(cut, most=most)
        rules[f"joined up to {most:.2g} s"] = partial(join, most=most)
    for rule, change in rules.items():
        rows = []
        for linker in list_linkers().values():
            objects = link_by(change(linker), table, table.raw_detections, SCORE)
            _linked[table] = {SCORE: objects}
            rows.append([metric(table, SCORE).value for metric in METRICS.values()])
            if has_truth:
                known = select_steady(objects) & (objects.state != UNSURE)
                known &= mark_true(objects, table.boxes)
                rows[-1].append(np.mean(objects.state[known] != DETECTED))
        values = 100 * np.array(rows)
        ends = zip(values.min(axis=0), values.max(axis=0), values[0], strict=True)
        cells = [f"{low:.1f}–{high:.1f} ({own:.1f})" for low, high, own in ends]
        print(f"| {rule} | {' | '.join(cells)} |")


def list_ends(objects, scores, least):
    """The blinks with at least a score at both ends, as pairs of detections; all such pairs."""
    blinks, steady = find_blinks(objects), select_steady(objects)
    sure = steady[blinks.first] & (blinks.state != UNSURE)
    ends = np.stack([blinks.first[sure] - 1, blinks.last[sure] + 1], axis=1)
    both = (objects.detection[rows] for rows in (ends, find_pairs(objects, DETECTED)))
    return [rows[(scores[rows] >= least).all(axis=1)] for rows in both]


def compare_trackers(cell):
    """The tables of a cell, one row per tracker."""
    table = read(cell)
    scores = table.raw_detections.score
    for title, change in (("as they link", lambda linker: linker), ("cut", cut)):
        print(f"{table.model} on {table.data}, {title}")
        print("| tracker | blink_rate | from 0.7 | blinks / 100 pairs | confident |")
        print("|---|--:|--:|--:|--:|")
        shared = {SCORE: [], CONFIDENT: []}
        for name, linker in list_linkers().items():
            objects = link_by(change(linker), table, table.raw_detections, SCORE)
            rates = list_rates(objects, scores)
            cells = [rates[0], rates[-1].split()[0]]
            for least, sets in shared.items():
                blinks, pairs = list_ends(objects, scores, least)
                sets.append(set(map(tuple, blinks.tolist())))
                cells.append(f"{100 * len(blinks) / len(pairs):.2f} ({len(blinks)} / {len(pairs)})")
            print(f"| {name} | {' | '.join(cells)} |")
        common = [f"{len(set.intersection(*s))} of {len(set.union(*s))}" for s in shared.values()]
        print(f"| in all of them | | | {' | '.join(common)} |")


def list_links(table):
    """By setting, the detection that follows each detection of an object, of short ones too."""
    links = []
    for name, value in SETTINGS:
        objects = link_with(table, name, value)
        rows = np.flatnonzero(objects.state == DETECTED)
        same = np.diff(objects.track[rows]) == 0
        pairs = np.stack([rows[:-1], rows[1:]], axis=1)[same]
        links.append(dict(objects.detection[pairs].tolist()))
    return links


def mark_agreed(objects, known, links):
    """(m,) the frames of `known` without those of gaps over which not all settings link."""
    agreed = known.copy()
    blinks = find_blinks(objects)
    for first, last in zip(blinks.first, blinks.last, strict=True):
        before, after = objects.detection[[first - 1, last + 1]].tolist()
        agreed[first : last + 1] &= all(of.get(before) == after for of in links)
    return agreed


def compare_agreed(cell):
    """The table of a cell, one row per tracker: all objects, and those on true ones."""
    table = read(cell)
    links = list_links(table)
    print(f"{table.model} on {table.data}")
    print("| tracker | blink_rate | agreed | on true objects | agreed |")
    print("|---|" + "--:|" * 4)
    for name, linker in list_linkers().items():
        objects = link_by(linker, table, table.raw_detections, SCORE)
        known = select_steady(objects) & (objects.state != UNSURE)
        parts = [known, mark_agreed(objects, known, links)]
        if table.boxes is not None and len(table.boxes):
            is_true = mark_true(objects, table.boxes)
            parts += [part & is_true for part in parts]
        lost = objects.state != DETECTED
        cells = [f"{lost[part].mean():.1%} ({lost[part].sum()} / {part.sum()})" for part in parts]
        print(f"| {name} | {' | '.join(cells)} |")


def main():
    """Reads the folder of the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    way = parser.add_mutually_exclusive_group()
    ways = (("trackers", compare_trackers), ("agree", compare_agreed), ("join", compare_joined))
    for name, table in ways:
        way.add_argument(f"--{name}", dest="print_table", action="store_const", const=table)
    parser.set_defaults(print_table=compare)
    options = parser.parse_args()
    for cell in sorted((options.run / "cells").iterdir()):
        options.print_table(cell)


if __name__ == "__main__":
    main()
