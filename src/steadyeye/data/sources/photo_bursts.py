"""Photos that show the same, as pm-sets: bursts of a camera, near duplicates, sets of a table."""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from operator import itemgetter

import numpy as np

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import Place, place, relative_path
from steadyeye.core.storage.text_files import Row, read_table
from steadyeye.core.types import Classes, Labels
from steadyeye.data.classes.class_lists import classes_of_names, find_class, read
from steadyeye.data.images import image_file
from steadyeye.data.images.image_file import SUFFIXES
from steadyeye.data.images.image_header import note_orientations, read_time
from steadyeye.data.images.near_duplicates import find_near_duplicates, make_view
from steadyeye.data.video.frame_folders import sampler
from steadyeye.data.video.label_sidecar import split_labels
from steadyeye.data.video.paths import compose, list_files, resolve_path, unread_notes
from steadyeye.data.video.pm_set_source import COLUMNS, FrameSets, Member, set_notes

WAYS = ("folder", "time", "column", "similarity")
FOLDER_NAMES = "folder"


def photo_bursts(
    path: str,
    by: str = "folder",
    gap: float = 2.0,
    table: str | None = None,
    labels: str | None = None,
    classes: str | None = None,
) -> FrameSets:
    """Photos of one scene as a pm-set: the middle one is the anchor, the others are its neighbours.

    `path`: the folder of the photos. `by`: the rule for sets: "folder", the photos directly in each
    folder, in the order of the texts and numbers of their names; "time", photos of one folder, each
    taken at most `gap` seconds after the one before, by EXIF; "column", those of one `set` in
    `table`, a CSV file with the columns file and set, in the order of its rows; "similarity",
    photos that differ by less than 3 grey levels on average at 32 × 32 pixels, directly or through
    other photos, to be reviewed by people. `labels`: a CSV file with the columns file and label
    (several labels joined by `|`, or in several rows), or "folder": the first folder below `path`
    is the class. `classes`: a known list or a class file; by default the labels' own names. Photos
    in no set of two or more are left out and counted. Tags: offset, video (the set), frame (the
    position in it). Raises `UsageError` if no set is left.

    Example: `photo_bursts(path='photos', by='time', gap=1, labels='labels.csv')`
    """
    root = resolve_path(path)
    files = {relative_path(file, root).as_posix(): file for file in list_files(root, SUFFIXES)}
    photos = dict(sorted(files.items(), key=lambda item: _split_numbers(item[0])))
    sets, note = _group(photos, by, gap, table)
    sets = {name: ids for name, ids in sets.items() if len(ids) > 1}
    if not sets:
        raise UsageError(
            f"no two of the {number_of(len(photos), 'photo')} in '{path}' are in one set by {by}; "
            f"give another of by={', '.join(WAYS)}"
        )
    known, truth = _read_labels(labels, photos, classes)
    members = _list_members(sets, truth)

    def locate(member: Member) -> Place:
        return photos[member.id.removeprefix(f"{member.group}/")]

    marks = [f"{member}:{locate(member).stat().st_size}" for member in members]
    alone = len(photos) - len(members)
    return FrameSets(
        name=root.name,
        classes=known,
        columns=COLUMNS + (("truth",) if known else ()),
        fingerprint=fingerprint("photo_bursts", by, repr(known), *marks),
        members=members,
        sample=sampler(locate),
        image_files=lambda member: [locate(member)],
        notes=(
            *set_notes(members),
            f"sets of photos by {by}",
            *note,
            *([f"{number_of(alone, 'photo')} left out: in no set of two or more"] if alone else []),
            *note_orientations(list(photos.values())),
            *unread_notes(root, SUFFIXES),
        ),
    )


def _split_numbers(name: str) -> list[str | int]:
    """Texts and numbers of a name in turn, by which IMG_9 comes before IMG_10."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


def _list_members(sets: "Sets", truth: Mapping[str, Labels]) -> tuple[Member, ...]:
    """The photos of all sets; the middle one of each is its anchor."""
    return tuple(
        Member(f"{name}/{id_}", name, name, index, index - len(ids) // 2, truth.get(id_, ()))
        for name, ids in sets.items()
        for index, id_ in enumerate(ids)
    )


Sets = dict[str, list[str]]


def _group(
    photos: Mapping[str, Place], by: str, gap: float, table: str | None
) -> tuple[Sets, tuple[str, ...]]:
    """The photos of each set, in order, and notes on how the sets were made."""
    if by not in WAYS:
        raise unknown("way to make sets of photos", by, WAYS)
    if (table is not None) != (by == "column"):
        raise UsageError("table='…' goes with by='column', a CSV file with the columns file, set")
    if by == "column":
        return _by_table(photos, place(table or "")), ()
    if by == "time":
        return _by_time(photos, gap)
    if by == "similarity":
        return _by_similarity(photos), (
            "near duplicates by their small grey views: not reviewed by people",
        )
    sets: Sets = {}
    for id_ in photos:
        folder = id_.rpartition("/")[0]
        sets.setdefault(folder or ".", []).append(id_)
    return sets, ()


def _by_table(photos: Mapping[str, Place], table: Place) -> Sets:
    sets: Sets = {}
    places: set[str] = set()
    find = _photo_finder(photos)
    for row in read_table(table, "table of sets", needed=("file", "set")):
        id_ = find(row)
        if id_ in places:
            raise UsageError(f"{row.place}: '{id_}' is in two sets; leave one row out")
        places.add(id_)
        sets.setdefault(row.get("set"), []).append(id_)
    return sets


def _photo_finder(photos: Iterable[str]) -> Callable[[Row], str]:
    """The function that finds the photo of a row; accents may be written in either form."""
    by_name = {compose(id_): id_ for id_ in photos}

    def find(row: Row) -> str:
        name = compose(row.get("file"))
        if name not in by_name:
            raise unknown(f"photo of {row.place}", name, by_name)
        return by_name[name]

    return find


def _by_time(photos: Mapping[str, Place], gap: float) -> tuple[Sets, tuple[str, ...]]:
    if not gap > 0:
        raise UsageError(f"gap={gap}: give the longest time between two photos, in seconds")
    times = {id_: read_time(file) for id_, file in photos.items()}
    folders: dict[str, list[tuple[float, str]]] = {}
    for id_, time in times.items():
        if time is not None:
            folders.setdefault(id_.rpartition("/")[0], []).append((time, id_))
    sets: Sets = {}
    for taken in folders.values():
        # photos of one time stay in the order of their names
        taken.sort(key=itemgetter(0))
        name = taken[0][1]
        sets[name] = [name]
        for (before, _), (time, id_) in pairwise(taken):
            if time - before > gap:
                name = id_
            sets.setdefault(name, []).append(id_)
    without = sum(time is None for time in times.values())
    note = f"{number_of(without, 'photo')} without a time in its EXIF"
    return sets, ((note,) if without else ())


def _by_similarity(photos: Mapping[str, Place]) -> Sets:
    """Photos that are near each other, directly or over others, by the name of the first."""
    from scipy.sparse import coo_array  # half a second, which other sets do not need
    from scipy.sparse.csgraph import connected_components

    pairs = find_near_duplicates([make_view(image_file.read(file)) for file in photos.values()])
    places = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    edges = coo_array((np.ones(len(pairs)), tuple(places)), shape=(len(photos),) * 2)
    _, component = connected_components(edges, directed=False)
    members: dict[int, list[str]] = {}
    for id_, number in zip(photos, component.tolist(), strict=True):
        members.setdefault(number, []).append(id_)
    return {ids[0]: ids for ids in members.values()}


def _read_labels(
    labels: str | None, photos: Mapping[str, Place], classes: str | None
) -> tuple[Classes | None, dict[str, Labels]]:
    """The classes, and the places of each photo's labels among them."""
    if labels is None:
        return (read(classes) if classes else None), {}
    names: dict[str, list[str]] = {}
    if labels == FOLDER_NAMES:
        names = {id_: [id_.partition("/")[0]] for id_ in photos if "/" in id_}
    else:
        find = _photo_finder(photos)
        for row in read_table(place(labels), "table of labels", needed=("file", "label")):
            several = split_labels(row.get("label"))
            names.setdefault(find(row), []).extend(several)
        if not any(names.values()):
            raise UsageError(f"the table of labels '{labels}' has no label; write one per photo")
    texts = sorted({name for own in names.values() for name in own})
    known = read(classes) if classes else classes_of_names(texts)

    def places(id_: str) -> Labels:
        return tuple(sorted({find_class(name, known, f"class of '{id_}'") for name in names[id_]}))

    return known, {id_: places(id_) for id_ in names}
