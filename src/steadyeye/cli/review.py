"""The commands that build a reviewed set."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from steadyeye.cli.options import Data, ProgressOptions, app, command
from steadyeye.cli.progress import watching
from steadyeye.cli.review_tables import build_tables
from steadyeye.cli.terminal import console, say, show, show_table
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.spec import Spec, parse

SetRoot = Annotated[Path, typer.Argument(help="Folder of the set.")]
Where = Annotated[
    str | None,
    typer.Option("--database", help="postgresql://…; default: SQLite in the set's folder."),
]
FORMS = ("table", "json")


@command()
def sample(
    *,
    out: Annotated[Path, typer.Option(help="Folder of the set.")],
    videos: Annotated[
        list[Path] | None, typer.Argument(help="Video files or folders of videos.")
    ] = None,
    data: Data = None,
    boxes: Annotated[
        Path | None, typer.Option(help="Boxes to review instead of frames, as COCO JSON.")
    ] = None,
    images: Annotated[Path | None, typer.Option(help="Folder of the images of --boxes.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="A sidecar file of labels and scene cuts.")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="Classes for labelling: vid30, ytbb, a file, or a,b,c.")
    ] = None,
    k: Annotated[int, typer.Option(help="Neighbours on each side of an anchor.")] = 10,
    anchors: Annotated[int, typer.Option(help="Anchors per video.")] = 1,
    seed: Annotated[int, typer.Option(help="Random seed of the anchors.")] = 0,
    display: ProgressOptions,
) -> None:
    """Make a set for review: anchors with neighbours, or suggested boxes."""
    if boxes or images:
        _sample_boxes(boxes, images, out, [*(videos or ()), *(data or ())], display.form)
        return
    sampling = {"k": k, "anchors": anchors, "seed": seed, "labels": labels}
    _sample_frames((videos or [], data or []), out, classes, sampling, display.form)


def _sample_frames(
    inputs: tuple[Sequence[Path], Sequence[str]],
    out: Path,
    classes: str | None,
    sampling: Mapping[str, Any],
    form: str,
) -> None:
    """`steadyeye sample` of frames; `inputs`: videos, and sources of other frames.

    `drawn`: which frames of videos; `form`: of the progress.
    """
    from steadyeye.core import plugins
    from steadyeye.data.video.label_sidecar import read
    from steadyeye.review.sampling.sampling import (
        Sampling,
        SourceLabels,
        merge_classes,
        read_frames,
        relabel_frames,
        write_set,
    )

    if (out / "run.json").is_file():
        raise UsageError(f"'{out}' holds a run; choose another --out for the set")
    videos, data = inputs
    if not videos and not data:
        raise UsageError("nothing to sample; give videos, --data, or --boxes with --images")
    specs = [Spec("video", {"path": str(path), **sampling}) for path in videos]
    others = [parse(text) for text in data]
    beside = read(sampling["labels"])
    lists = [SourceLabels(str(sampling["labels"]), beside.classes, beside.present)] * len(specs)
    for spec in others:
        source = plugins.build("sources", spec)
        present = frozenset(label for truth in source.truths for label in truth)
        lists.append(SourceLabels(str(spec), source.classes, present))
    merged, places = merge_classes(lists, _read_classes(classes))
    # data is drawn as its spec says, whatever the flags for videos
    drawn_from = {**(sampling if videos else {}), **({"data": list(data)} if data else {})}
    how = Sampling(out.name, drawn_from, merged)
    with watching(form) as watcher:
        stored = (
            relabel_frames(read_frames([spec], out, watcher.begin), own)
            for spec, own in zip([*specs, *others], places, strict=True)
        )
        frames = write_set(chain.from_iterable(stored), out, how)
    show(f"{out}: {number_of(frames, 'frame')}; next: steadyeye review {out}")


def _sample_boxes(
    boxes: Path | None, images: Path | None, out: Path, more: Sequence[Any], form: str
) -> None:
    """`steadyeye sample --boxes`; `more`: what cannot be in the same set."""
    from steadyeye.review.sampling.box_sampling import sample_boxes

    if more or boxes is None or images is None:
        raise UsageError("a set of boxes needs --boxes and --images, and no videos beside")
    with watching(form) as watcher:
        image_count, box_count = sample_boxes(boxes, images, out, watcher.begin("images", None))
    counts = f"{number_of(box_count, 'box')} in {number_of(image_count, 'image')}"
    show(f"{out}: {counts}; next: steadyeye review {out}")


def _read_classes(text: str | None) -> Any:
    """The classes for labelling: a known list, a file or names with commas; None: not given."""
    from steadyeye.data.classes.class_lists import classes_of_names, read

    if text is None:
        return None
    if "," not in text:
        return read(text)
    return classes_of_names(
        dict.fromkeys(" ".join(name.split()) for name in text.split(",") if name.strip())
    )


@app.command()
def review(
    root: SetRoot,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    name: Annotated[
        list[str] | None, typer.Option("--reviewer", help="Add a reviewer; may be repeated.")
    ] = None,
    renew: Annotated[
        list[str] | None,
        typer.Option("--renew", help="Make a new link for a reviewer; may be repeated."),
    ] = None,
    url: Annotated[str | None, typer.Option(help="Public address, if there is a proxy.")] = None,
    database: Where = None,
) -> None:
    """Serve a set for review in the browser. Prints one private link per reviewer, once."""
    _check_installed()
    import uvicorn

    from steadyeye.data.annotations import review_set
    from steadyeye.review import database as databases
    from steadyeye.review.web.app import build_app

    folder = review_set.read(root)
    data = databases.connect(database or databases.default_url(root))
    base = url or f"http://{host}:{port}"
    hosts = ["127.0.0.1", "localhost", host, urlsplit(base).hostname or host]
    server = build_app(folder, data, hosts)
    for person, token in _make_links(data, server.state.rules.plan, name or [], renew or []):
        show(f"{person}: {base}/r/{token}")
    show(f"reviewing {folder.name} at {base}; Ctrl-C stops, nothing is lost")
    uvicorn.run(server, host=host, port=port, log_level="warning", proxy_headers=bool(url))


def _make_links(
    data: Any, plan: Any, names: Sequence[str], renewed: Sequence[str]
) -> Sequence[tuple[str, str]]:
    """(name, token) of the people who are new or whose link is renewed; the first is the admin."""
    from steadyeye.review.protocol import reviewers

    joint = plan.joint
    with data.writing() as connection:
        links = []
        if not any(person.admin for person in reviewers.list_reviewers(connection)):
            links.append(("admin", reviewers.add_reviewer(connection, "admin", admin=True)))
        links += [(name, reviewers.add_reviewer(connection, name, joint=joint)) for name in names]
        links += [(name, reviewers.renew_token(connection, name)) for name in renewed]
    return links


@app.command("review-status")
def review_status(
    root: SetRoot,
    runs: Annotated[
        list[Path] | None,
        typer.Option(help="Runs on the set, to show how the review changes their numbers."),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="table or json.")] = "table",
    database: Where = None,
) -> None:
    """Show the progress of a review: stages, reviewers, agreement."""
    if form not in FORMS:
        raise unknown("format", form, FORMS)
    _check_installed()
    from steadyeye.review.results.status import summarise

    folder, plan, data = _open_set(root, database)
    with data.reading() as connection:
        summary = {**summarise(connection, folder, plan)}
        if runs:
            summary["impact"] = _impact(connection, folder, plan, runs)
    if form == "json":
        console.print_json(json.dumps(summary))
        return
    say(f"{summary['set']}: where its review stands")
    for table in build_tables(summary):
        if table.rows:
            show("")
            show_table(table.columns, table.rows, table.numbers)


@app.command("review-audit")
def review_audit(
    root: SetRoot,
    most: Annotated[
        float, typer.Option(help="Largest tolerated share of wrong accepted neighbours.")
    ] = 0.01,
    seed: Annotated[int, typer.Option(help="Random seed of the sample.")] = 0,
    database: Where = None,
) -> None:
    """Check a random sample of undecided pairs, then accept the rest in bulk."""
    _check_installed()
    _, plan, data = _open_set(root, database)
    from steadyeye.review.bulk.audit import run_audit

    say(data.write(lambda connection: run_audit(connection, plan, most, seed)))


@app.command("review-export")
def review_export(
    root: SetRoot,
    out: Annotated[Path, typer.Option(help="Folder for the reviewed set.")],
    formats: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="set, coco, pmsets, label_studio or cvat; separate several with commas "
            "(default: set for frames, coco for boxes).",
        ),
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Leave out undecided items.")] = False,
    database: Where = None,
) -> None:
    """Export the accepted items as a set to evaluate, or the open ones for another tool."""
    _check_installed()
    from steadyeye.data.annotations import review_set
    from steadyeye.review.interchange import formats as interchange
    from steadyeye.review.workflow import queue

    names = interchange.choose_formats(review_set.read(root), formats)
    asks = bool(set(names) & set(interchange.TOOLS))
    folder, plan, data = _open_set(root, database, begin=asks)
    if asks:
        with data.writing() as connection:
            queue.add_set_items(connection, folder, plan)
    for name in names:
        with data.reading() as connection:
            counts = interchange.export_format(
                connection, folder, plan, out, name=name, partial=partial
            )
        for kind, count in counts.items():
            show(f"{kind.replace('_', ' ')}: {count:,}")
        for line in interchange.suggest_next(name, out, plan):
            show(line)


@app.command("review-import")
def review_import(
    root: SetRoot,
    file: Annotated[Path, typer.Argument(help="File exported by the other tool.")],
    tool: Annotated[str, typer.Option("--from", help="label_studio or cvat.")],
    prefix: Annotated[
        str, typer.Option("--reviewer-prefix", help="Prefix for the names of annotators.")
    ] = "",
    annotator: Annotated[str, typer.Option(help="Annotator of answers without a name.")] = "",
    database: Where = None,
) -> None:
    """Import decisions made in Label Studio or CVAT."""
    _check_installed()
    from steadyeye.data.annotations import review_set
    from steadyeye.review.interchange import formats
    from steadyeye.review.interchange.answers import import_annotations
    from steadyeye.review.workflow import queue
    from steadyeye.review.workflow.decisions import read_rules

    annotations = formats.find_reader(tool)(review_set.read(root), file, annotator)
    folder, plan, data = _open_set(root, database, begin=True)
    rules = read_rules(folder)
    with data.writing() as connection:
        queue.add_set_items(connection, folder, plan)
        counts = import_annotations(connection, rules, annotations, prefix)
    for kind, count in counts.items():
        show(f"{kind.replace('_', ' ')}: {count:,}")


def _open_set(root: Path, database: str | None, *, begin: bool = False) -> tuple[Any, Any, Any]:
    """The set in a folder, its plan and its database.

    Raises `UsageError` where nobody reviewed it yet, unless `begin`.
    """
    from steadyeye.data.annotations import review_set
    from steadyeye.review import database as databases
    from steadyeye.review.protocol.stages import read_plan

    folder = review_set.read(root)
    if not begin and database is None and not (root / "review.sqlite").is_file():
        raise UsageError(f"'{root}' was not reviewed yet; start with `steadyeye review {root}`")
    data = databases.connect(database or databases.default_url(root))
    return folder, read_plan(folder.content), data


def _check_installed() -> None:
    """Raises `UsageError` where a package that the review needs is absent."""
    try:
        import fastapi  # noqa: F401
        import krippendorff  # noqa: F401
        import sklearn  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ModuleNotFoundError as error:
        from steadyeye.core import plugins

        raise plugins.not_installed("the review", error, "review") from error


def _impact(connection: Any, folder: Any, plan: Any, runs: Sequence[Path]) -> list[dict[str, Any]]:
    from steadyeye.predictions.read import cells, read
    from steadyeye.review.results.impact import measure_impact
    from steadyeye.review.results.verdicts import judge_frames

    if folder.content.get("kind") == "boxes":
        raise UsageError(
            "the review's impact is told of frames; export the boxes and evaluate them"
        )
    accepted = judge_frames(connection, folder, plan)
    return [
        asdict(change)
        for run in runs
        for cell in cells(run)
        for change in measure_impact(read(*cell), folder, plan, accepted)
    ]
