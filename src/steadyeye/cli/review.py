"""The commands that build a reviewed set."""

from pathlib import Path
from typing import Annotated

import typer

from steadyeye.cli.options import Data, Quiet, Shown, app, choose_progress

SetRoot = Annotated[Path, typer.Argument(help="Folder of the set.")]
Where = Annotated[
    str | None,
    typer.Option("--database", help="postgresql://…; default: SQLite in the set's folder."),
]


@app.command()
def sample(
    context: typer.Context,
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
    progress: Shown = "bar",
    quiet: Quiet = False,
) -> None:
    """Make a set for review: anchors with neighbours, or suggested boxes."""
    from steadyeye.cli import review_work

    if boxes or images:
        review_work.sample_boxes(
            boxes, images, out, [*(videos or ()), *(data or ())], choose_progress(context)
        )
        return
    drawn = {"k": k, "anchors": anchors, "seed": seed, "labels": labels}
    review_work.sample((videos or [], data or []), out, classes, drawn, choose_progress(context))


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
    from steadyeye.cli import review_work

    review_work.serve(root, (host, port, url), (name or [], renew or []), database)


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
    from steadyeye.cli import review_status as work

    work.status(root, runs or [], database, form)


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
    from steadyeye.cli import review_work

    review_work.audit(root, most, seed, database)


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
    from steadyeye.cli import review_work

    review_work.export(root, out, (formats, database), partial=partial)


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
    from steadyeye.cli import review_work

    review_work.take(root, file, (tool, prefix, annotator), database)
