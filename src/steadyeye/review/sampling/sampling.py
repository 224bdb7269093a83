"""A set to review, sampled: anchors and their neighbours, stored once each, and marked.

Shankar et al., "Do Image Classifiers Generalize Across Time?", Section 2.1: one anchor a video,
drawn uniformly, and the frames within ±k.
"""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.format import number_of
from steadyeye.core.provenance import provenance
from steadyeye.core.spec import Spec
from steadyeye.core.storage.files import encode, write_file
from steadyeye.core.storage.sha256sums import write_sums
from steadyeye.core.types import Classes, Image, Sample, Source, Tag
from steadyeye.data.annotations.review_set import FRAMES, SCENE_CUT, VERSION, check_vacant, table
from steadyeye.data.classes.class_mapping import by_meaning
from steadyeye.data.classes.matching import ALIAS, LIST, NAME, SYNSET
from steadyeye.review.sampling.image_store import keep

SIDE = 32
NEAR = 3.0
"""Grey levels, on average over a view: pictures nearer than that show the same."""


def view(image: Image) -> NDArray[np.float32]:
    """(1024,) a grey thumbnail, on which pictures are compared."""
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return np.asarray(small, dtype=np.float32).reshape(-1)


def alike(views: Sequence[NDArray[np.float32]]) -> list[tuple[int, int]]:
    """The pairs of views that differ by less than `NEAR` on average, the lower number first."""
    if not views:
        return []
    stacked = np.stack(views)
    means = stacked.mean(axis=1)
    order = np.argsort(means, kind="stable")
    # views differ by no less than their means do
    last = np.searchsorted(means[order], means[order] + NEAR)
    pairs = []
    for at, one in enumerate(order):
        others = order[at + 1 : last[at]]
        near = np.abs(stacked[others] - stacked[one]).mean(axis=1) < NEAR
        pairs += [(min(int(one), int(j)), max(int(one), int(j))) for j in others[near]]
    return sorted(pairs)


JUMP = 30.0  # grey levels between consecutive thumbnails: a scene cut


@dataclass(frozen=True)
class Sampling:
    """What a set is called, and what its manifest says of how it was drawn."""

    name: str
    drawn: Mapping[str, Any]
    classes: Classes | None


@dataclass(frozen=True, eq=False)
class Stored:
    """A frame that was stored: its row of the table, and a small grey view to compare it by."""

    row: Mapping[str, Any]
    view: NDArray[np.float32]


def store(source: Source, out: Path) -> Iterator[Stored]:
    """Stores the frames of all pm-sets of a source under a folder, one after the other.

    They are JPEG files named by their content, those that are JPEG files as they are; one that is
    there already is not written again. Raises `UsageError` for a source without pm-sets.
    """
    if not {"group", "offset"} <= set(source.columns):
        raise UsageError(f"{source.name} has no anchors and neighbours; sample videos")
    for number in range(len(source)):
        one = source[number]
        name, image = keep(out, one.image)
        seen = one.measure(image) if one.measure else {}
        yield Stored(_row(one, name, {**one.tags, **seen}), view(image))


def sample(stored: Iterable[Stored], out: Path, how: Sampling) -> int:
    """Writes the set of the frames stored in its folder and returns how many there are.

    The manifest is written last, so that a stopped sampling is no set and can be begun again.
    Raises `UsageError` where the folder holds a set already.
    """
    check_vacant(out)
    rows: list[dict[str, Any]] = []
    views: dict[str, NDArray[np.float32]] = {}
    for each in stored:
        rows.append(dict(each.row))
        views[each.row["id"]] = each.view
    if not rows:
        raise UsageError("there are no frames to review; give videos")
    marked = [_beyond(row) for row in _duplicates(_cuts(rows, views), views)]
    names = how.classes.names if how.classes else ()
    write_file(out / "frames.parquet", table(marked, FRAMES, names))
    content = encode(_manifest(how))
    # set.json is not listed: people write into it how the set is to be reviewed
    write_sums(out, [out / "frames.parquet"])
    write_file(out / "set.json", content)
    return len(rows)


def _row(one: Sample, image: str, tags: Mapping[str, Tag]) -> dict[str, Any]:
    return {
        "id": one.id,
        "group": one.group,
        "video": str(tags.get("video", one.group)),
        "frame": int(tags.get("frame", tags["offset"])),
        "offset": int(tags["offset"]),
        "seconds": float(tags.get("seconds", 0.0)),
        "fps": float(tags.get("fps", 0.0)),
        "frame_type": str(tags.get("frame_type", "")),
        "labels": list(one.truth),
        "image": image,
        "across_cut": False,
        "duplicate_of": "",
        "accepted": True,
        "reason": "",
    }


def _beyond(row: dict[str, Any]) -> dict[str, Any]:
    """The row, not accepted where a scene cut lies between it and its anchor."""
    return {**row, "accepted": False, "reason": SCENE_CUT} if row["across_cut"] else row


def _cuts(
    rows: Sequence[dict[str, Any]], views: Mapping[str, NDArray[np.float32]]
) -> list[dict[str, Any]]:
    """The rows, marked where a scene cut lies between a frame and its anchor."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    marked = []
    for group in groups.values():
        ordered = sorted(group, key=lambda row: row["offset"])
        jumps = [
            later["offset"]
            for sooner, later in pairwise(ordered)
            if np.abs(views[sooner["id"]] - views[later["id"]]).mean() > JUMP
        ]
        for row in ordered:
            low, high = sorted((0, row["offset"]))
            marked.append({**row, "across_cut": any(low < jump <= high for jump in jumps)})
    return marked


def _duplicates(
    rows: Sequence[dict[str, Any]], views: Mapping[str, NDArray[np.float32]]
) -> list[dict[str, Any]]:
    """The rows, with the earlier anchor that an anchor nearly equals."""
    anchors = [row for row in rows if row["offset"] == 0]
    seen = np.stack([views[row["id"]] for row in anchors])
    same: dict[str, str] = {}
    for number, row in enumerate(anchors):
        near = np.flatnonzero(np.abs(seen[:number] - seen[number]).mean(axis=1) < NEAR)
        if len(near):
            same[row["group"]] = anchors[int(near[0])]["group"]
    return [{**row, "duplicate_of": same.get(row["group"], "")} for row in rows]


def _manifest(how: Sampling) -> dict[str, Any]:
    classes = how.classes
    return {
        "version": VERSION,
        "name": how.name,
        "kind": "frames",
        "classes": _record_classes(classes) if classes else None,
        "drawn": dict(how.drawn),
        "provenance": provenance(),
    }


def _record_classes(classes: Classes) -> dict[str, Any]:
    return {"names": classes.names, "wnids": classes.wnids, "closed": classes.closed}


Begin: TypeAlias = Callable[[str, int], Callable[[int], None]]

SECONDS = 120.0  # for one frame: opening a video and the seek to its first frame included


def read_frames(
    specs: Sequence[Spec], out: Path, begin: Begin, seconds: float = SECONDS
) -> Iterator[Stored]:
    """The stored frames of the sources that `specs` name, one source after the other.

    `begin`: called with the name and the number of frames of each; what it returns, with how many
    more are done.
    Raises `UsageError` where one frame takes longer than `seconds`, and whatever the source does.
    """
    context = multiprocessing.get_context("spawn")
    for spec in specs:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_store, args=(spec, out, theirs), daemon=True)
        process.start()
        theirs.close()
        try:
            yield from _receive_frames(spec, ours, begin, seconds)
        finally:
            process.kill()
            process.join()


def _receive_frames(spec: Spec, ours: Connection, begin: Begin, seconds: float) -> Iterator[Stored]:
    advance: Callable[[int], None] | None = None
    while True:
        if not ours.poll(seconds):
            raise UsageError(f"{spec} gave no frame for {seconds:.0f} s; leave the file out")
        try:
            message = ours.recv()
        except EOFError:
            raise UsageError(f"the decoder of {spec} stopped; leave the file out") from None
        if message is None:
            return
        if isinstance(message, str):
            raise UsageError(message)
        if advance is None:
            advance = begin(Path(str(spec.kwargs.get("path", spec))).name, message)
            continue
        advance(1)
        yield message


def _store(spec: Spec, out: Path, theirs: Connection) -> None:
    try:
        source = plugins.build("sources", spec)
        theirs.send(len(source))
        for each in store(source, out):
            theirs.send(each)
    except UsageError as error:
        theirs.send(str(error))
    else:
        theirs.send(None)


SAME = (LIST, ALIAS, SYNSET, NAME)
"""The ways in which two classes are one; a kind of a class is another one."""


@dataclass(frozen=True)
class Labelled:
    """What a source labels its frames with: its list of classes, and those of it that occur.

    `name`: what the source is called in errors.
    """

    name: str
    classes: Classes | None
    present: frozenset[int]


def merge_classes(
    sources: Sequence[Labelled], given: Classes | None
) -> tuple[Classes | None, tuple[tuple[int, ...], ...]]:
    """The list of a set, and for each source the place in it of each of its own classes.

    `given`: the list that the user wants; None: all that the sources have, those of the same
    meaning, WordNet id or name once, in the order they come first. A place is −1 where the list has
    not the class. Raises `UsageError` where a class that occurs has no place, and where two sources
    mean different things by one name.
    """
    whole = given
    if given is None:
        for each in sources:
            whole = _with(whole, each) if each.classes else whole
    return whole, tuple(_places(each, whole) for each in sources)


def relabel_frames(stored: Iterable[Stored], places: Sequence[int]) -> Iterator[Stored]:
    """Stored frames with their labels in the list of the set; `places`: of the source's classes."""
    for each in stored:
        labels = sorted({places[label] for label in each.row["labels"]})
        yield replace(each, row={**each.row, "labels": labels})


def _with(whole: Classes | None, source: Labelled) -> Classes:
    """A list with the classes of a source that it has not yet."""
    assert source.classes is not None, "asked before"
    more = source.classes
    if whole is None:
        return replace(more, parents=None)
    found = _same(more, whole)
    names, wnids = list(whole.names), list(whole.wnids or ("",) * len(whole))
    for index, name in enumerate(more.names):
        if found[index] >= 0:
            continue
        if name in names:
            raise UsageError(
                f"'{source.name}' means something else by '{name}' than an earlier source; "
                "rename one of the two, or sample them separately"
            )
        names.append(name)
        wnids.append(more.wnids[index] if more.wnids else "")
    both = whole.closed and more.closed
    return Classes(tuple(names), tuple(wnids) if any(wnids) else None, closed=both)


def _places(source: Labelled, whole: Classes | None) -> tuple[int, ...]:
    if source.classes is None or whole is None:
        return ()
    places = _same(source.classes, whole)
    lost = [source.classes.names[i] for i in sorted(source.present) if places[i] < 0]
    if lost:
        raise UsageError(
            f"--classes lacks {number_of(len(lost), 'class')} of '{source.name}', "
            f"{list_texts(lost)}; add them to --classes or leave it out"
        )
    return places


def _same(source: Classes, target: Classes) -> tuple[int, ...]:
    """For each class the one of a list that is the same, −1: none is."""
    if source.names == target.names and source.wnids == target.wnids:
        return tuple(range(len(source)))
    found = by_meaning(source, target)
    pairs = zip(found.destinations, found.ways, strict=True)
    return tuple(to if way in SAME else -1 for to, way in pairs)
