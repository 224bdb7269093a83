"""The commands that make a set for review, and propose labels for one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadyeye.cli.options import ClassMap, Models, ProgressOptions, command
from steadyeye.cli.progress import watching
from steadyeye.cli.terminal import progress_console, say, show
from steadyeye.core.errors import UsageError, find_repeated, unknown
from steadyeye.core.format import number_of, quote_word
from steadyeye.core.spec import Spec, parse

if TYPE_CHECKING:
    from steadyeye.core.predictions import Predictions
    from steadyeye.core.storage.files import Place

OtherFrames = Annotated[
    list[str] | None,
    typer.Option(
        help="Source of other anchors with neighbours, e.g. \"davis(root='DAVIS', "
        "labels='labels.csv')\"; may be repeated."
    ),
]
LabelClasses = Annotated[
    str | None,
    typer.Option(
        help="Classes for labelling: a known list (vid30), a file, or names such as cat,dog."
    ),
]


@command()
def sample(
    *,
    out: Annotated[Path, typer.Option(help="Folder of the set.")],
    videos: Annotated[
        list[Path] | None, typer.Argument(help="Video files or folders of videos.")
    ] = None,
    data: OtherFrames = None,
    boxes: Annotated[
        Path | None,
        typer.Option(help="COCO JSON file of boxes to review instead of frames; needs --images."),
    ] = None,
    images: Annotated[Path | None, typer.Option(help="Folder of the images of --boxes.")] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="Labels of the videos: a sidecar file (.json or .csv), or one class name for all."
        ),
    ] = None,
    classes: LabelClasses = None,
    model: Models = None,
    class_map: ClassMap = None,
    k: Annotated[int, typer.Option(help="Number of neighbours on each side of an anchor.")] = 10,
    anchors: Annotated[int, typer.Option(help="Number of anchors per video.")] = 1,
    seed: Annotated[int, typer.Option(help="Random seed of the anchors.")] = 0,
    display: ProgressOptions,
) -> None:
    """Make a set for review: anchors with neighbours, or suggested boxes.

    With --model, prints which classes of the set a model cannot name, before people label any.
    """
    from steadyeye.predictions.json_record import check_results
    from steadyeye.runner.short_forms import expand_model

    check_results(out, "sample")
    models = ModelsToCheck(list(map(expand_model, model or [])), class_map)
    if boxes or images:
        more = [*(videos or ()), *(data or ()), *([classes] if classes else ())]
        _sample_boxes((boxes, images), out, more, models, display.form)
        return
    sampling = {"k": k, "anchors": anchors, "seed": seed, "labels": labels}
    inputs = Inputs(videos or [], data or [], _read_classes(classes))
    _sample_frames(inputs, out, sampling, models, display.form)


@dataclass(frozen=True)
class Inputs:
    """Videos, sources of other frames, and the classes for labelling, None where none are given."""

    videos: Sequence[Path]
    data: Sequence[str]
    classes: Any


@dataclass(frozen=True)
class ModelsToCheck:
    """Models that are to name a set's classes, and how their classes become those of the set."""

    specs: Sequence[str]
    class_map: str | None

    def warn(self, classes: Any) -> None:
        """Prints which of a set's classes each model cannot name."""
        from steadyeye.core import plugins
        from steadyeye.review.sampling.sampling import describe_unnamed

        if self.class_map and not self.specs:
            raise UsageError("--class-map is for a --model; give --model too, or leave it out")
        if self.specs and not classes:
            raise UsageError("the set has no classes that a --model could name; give --classes")
        for spec in self.specs:
            model = plugins.build("models", parse(spec))
            if line := describe_unnamed(model, classes, self.class_map):
                say(f"warning: {line}", to=progress_console)


def _sample_frames(
    inputs: Inputs, out: Path, sampling: Mapping[str, Any], models: ModelsToCheck, form: str
) -> None:
    """`steadyeye sample` of frames; `sampling`: which frames of videos; `form`: of progress."""
    from steadyeye.core import plugins
    from steadyeye.data.video.label_sidecar import read
    from steadyeye.data.video.paths import check_distinct
    from steadyeye.review.sampling.decoding_process import read_frames
    from steadyeye.review.sampling.sampling import (
        Sampling,
        SourceLabels,
        merge_classes,
        relabel_frames,
        write_set,
    )

    videos, data = inputs.videos, inputs.data
    if not videos and not data:
        raise UsageError("nothing to sample; give videos, --data, or --boxes with --images")
    check_distinct(map(str, videos))
    specs = [Spec("video", {"path": str(path), **sampling}) for path in videos]
    others = [parse(text) for text in data]
    beside = read(sampling["labels"])
    lists = [SourceLabels(str(sampling["labels"]), beside.classes, beside.present)] * len(specs)
    for spec in others:
        source = plugins.build("sources", spec)
        present = frozenset(label for truth in source.truths for label in truth)
        lists.append(SourceLabels(str(spec), source.classes, present))
    merged, places = merge_classes(lists, inputs.classes)
    models.warn(merged)
    # data is drawn as its spec says, whatever the flags for videos
    drawn_from = {**(sampling if videos else {}), **({"data": list(data)} if data else {})}
    notes: list[str] = []
    how = Sampling(out.name, drawn_from, merged, notes)
    with watching(form) as watcher:
        stored = (
            relabel_frames(read_frames([spec], out, watcher.begin, notes), own)
            for spec, own in zip([*specs, *others], places, strict=True)
        )
        frames = write_set(chain.from_iterable(stored), out, how)
    for note in (*notes, *([] if merged else [_note_no_labels(videos)])):
        say(f"note: {note}", to=progress_console)
    show(f"{out}: {number_of(frames, 'frame')}; next: steadyeye review {quote_word(str(out))}")


def _note_no_labels(videos: Sequence[Path]) -> str:
    from steadyeye.runner.short_forms import find_sidecar

    file = next(filter(None, map(find_sidecar, videos)), "FILE")
    return (
        "no labels and no classes, so people judge similarity alone; for more give "
        f"--labels {quote_word(str(file))} or --classes, and another --out"
    )


def _sample_boxes(
    files: tuple[Path | None, Path | None],
    out: Path,
    more: Sequence[Any],
    models: ModelsToCheck,
    form: str,
) -> None:
    """`steadyeye sample --boxes`; `files`: the boxes, and the folder of their images.

    `more`: what cannot be in the same set.
    """
    from steadyeye.data.annotations.review_candidates import read
    from steadyeye.review.sampling.sampling import sample_boxes

    boxes, images = files
    if more or boxes is None or images is None:
        raise UsageError(
            "a set of boxes takes --boxes and --images, and no videos, --data or --classes; "
            "leave the others out"
        )
    models.warn(read(boxes).classes if models.specs else None)
    with watching(form) as watcher:
        image_count, box_count = sample_boxes(boxes, images, out, watcher.begin("images", None))
    counts = f"{number_of(box_count, 'box')} in {number_of(image_count, 'image')}"
    show(f"{out}: {counts}; next: steadyeye review {quote_word(str(out))}")


def _read_classes(text: str | None) -> Any:
    """The classes for labelling: a known list, a file or names with commas; None: not given."""
    from steadyeye.data.classes.class_lists import LISTS, WHAT, classes_of_names, read

    if text is None:
        return None
    if text in LISTS or ("," not in text and Path(text).suffix):
        return read(text)
    if "," not in text:
        raise UsageError(f"{unknown(WHAT, text, LISTS)}; for a class '{text}' write '{text},'")
    return classes_of_names(
        dict.fromkeys(" ".join(name.split()) for name in text.split(",") if name.strip())
    )


@command()
def propose(
    run: Annotated[str, typer.Argument(help="Folder of a run of a detector on whole videos.")],
    out: Annotated[Path, typer.Option(help="JSON sidecar to write: the labels of each video.")] = (
        Path("proposed.json")
    ),
    seconds: Annotated[
        float, typer.Option(help="Minimum time in seconds from an object's first to last frame.")
    ] = 1.0,
    sure: Annotated[
        float, typer.Option(help="Minimum mean score of an object, above 0 and at most 1.")
    ] = 0.7,
) -> None:
    """Propose labels for `sample --labels` from objects that a detector follows in one class.

    An object counts if the detector loses it in at most 5 % of its frames. People confirm the
    labels: every anchor, and its neighbours in bulk (`review-audit`).
    """
    import json

    from steadyeye.core.storage.files import place, write_output
    from steadyeye.metrics.sequences.label_proposals import list_ranges, propose_labels
    from steadyeye.runner.collect import tables

    run_tables = tables([place(run)])
    _check_distinct_videos(run, run_tables)
    proposals = [
        proposal for _, table in run_tables for proposal in propose_labels(table, seconds, sure)
    ]
    if not proposals:
        raise UsageError(
            f"no object of '{run}' is followed for {seconds:g} s with a mean score of {sure:g}; "
            "lower --seconds or --sure"
        )
    ranges = list_ranges(proposals)
    content = {
        "classes": dict.fromkeys(sorted({proposal.label for proposal in proposals})),
        "videos": {
            video: {"labels": [{"first": a, "last": b, "labels": c} for a, b, c in parts]}
            for video, parts in ranges.items()
        },
    }
    write_output(out, json.dumps(content, indent=1, ensure_ascii=False).encode())
    total = sum(last - first + 1 for parts in ranges.values() for first, last, _ in parts)
    frames = sum(len(table) for _, table in run_tables)
    say(
        f"{number_of(len(proposals), 'object')} of {number_of(len(ranges), 'video')}: labels for "
        f"{number_of(total, 'frame')}; predicted: {number_of(frames, 'frame')}"
    )
    show(str(out))


def _check_distinct_videos(run: str, run_tables: "Sequence[tuple[Place, Predictions]]") -> None:
    """Raises `UsageError` where two tables have a video of one name: labels would be joined."""
    videos = (video for _, table in run_tables for video in table.clusters[0].tolist())
    repeated = find_repeated(videos)
    if repeated:
        raise UsageError(
            f"'{repeated[0]}' of '{run}' was predicted by several detectors, or two of its data "
            "sets have a video of that name; give a run of one detector on one data set"
        )
