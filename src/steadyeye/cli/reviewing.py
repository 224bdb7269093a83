"""The commands that build a reviewed set."""

from pathlib import Path
from typing import Annotated

import typer

from steadyeye.cli.options import Data, Quiet, Shown, app, shown

SetRoot = Annotated[Path, typer.Argument(help="The folder of a set.")]
Where = Annotated[
    str | None, typer.Option("--database", help="postgresql://…; SQLite in the set if left out.")
]


@app.command()
def sample(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="The folder of the set.")],
    videos: Annotated[
        list[Path] | None, typer.Argument(help="Video files, or folders of them.")
    ] = None,
    data: Data = None,
    boxes: Annotated[
        Path | None, typer.Option(help="Suggested boxes to review instead, COCO's JSON.")
    ] = None,
    images: Annotated[Path | None, typer.Option(help="The folder of the boxes' images.")] = None,
    labels: Annotated[str | None, typer.Option(help="A sidecar of labels and cuts.")] = None,
    classes: Annotated[
        str | None, typer.Option(help="Classes to label with: vid30, ytbb, a file, or a,b,c.")
    ] = None,
    k: Annotated[int, typer.Option(help="Neighbours on each side, native frames.")] = 10,
    anchors: Annotated[int, typer.Option(help="Anchors a video.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the anchors.")] = 0,
    progress: Shown = "bar",
    quiet: Quiet = False,
) -> None:
    """Draw anchors and their neighbours, or take suggested boxes: a set for people to review."""
    from steadyeye.cli import review_work

    if boxes or images:
        review_work.sample_boxes(
            boxes, images, out, [*(videos or ()), *(data or ())], shown(context)
        )
        return
    drawn = {"k": k, "anchors": anchors, "seed": seed, "labels": labels}
    review_work.sample((videos or [], data or []), out, classes, drawn, shown(context))


@app.command()
def review(
    root: SetRoot,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at.")] = 8000,
    name: Annotated[
        list[str] | None, typer.Option("--reviewer", help="Adds a reviewer; several are allowed.")
    ] = None,
    renew: Annotated[
        list[str] | None, typer.Option("--renew", help="Makes a new link for one who lost theirs.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="The address people use, where a proxy stands before.")
    ] = None,
    database: Where = None,
) -> None:
    """Serve a set for review; prints one private link a reviewer, once."""
    from steadyeye.cli import review_work

    review_work.serve(root, (host, port, url), (name or [], renew or []), database)


@app.command("review-status")
def review_status(
    root: SetRoot,
    runs: Annotated[
        list[Path] | None, typer.Option(help="Runs on the set: what the review changes in them.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="table or json.")] = "table",
    database: Where = None,
) -> None:
    """Say where a review stands: stages, people, agreement, and what it changes."""
    from steadyeye.cli import review_status as work

    work.status(root, runs or [], database, form)


@app.command("review-audit")
def review_audit(
    root: SetRoot,
    most: Annotated[
        float, typer.Option(help="The share of accepted neighbours that may be wrong.")
    ] = 0.01,
    seed: Annotated[int, typer.Option(help="Seed of the random sample.")] = 0,
    database: Where = None,
) -> None:
    """Audit what was spared, at random, and accept it in bulk once that bounds its errors."""
    from steadyeye.cli import review_work

    review_work.audit(root, most, seed, database)


@app.command("review-export")
def review_export(
    root: SetRoot,
    out: Annotated[Path, typer.Option(help="The folder of the reviewed set.")],
    formats: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="set (frames) or coco (boxes) if left out; pmsets, label_studio, cvat; several "
            "with commas.",
        ),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave out what is not decided.")
    ] = False,
    database: Where = None,
) -> None:
    """Write what people accepted, as a set to evaluate; or what is asked, for another tool."""
    from steadyeye.cli import review_work

    review_work.export(root, out, (formats, database), partial=partial)


@app.command("review-import")
def review_import(
    root: SetRoot,
    file: Annotated[Path, typer.Argument(help="What the other tool exported.")],
    tool: Annotated[str, typer.Option("--from", help="label_studio or cvat.")],
    prefix: Annotated[
        str, typer.Option("--reviewer-prefix", help="Put before the names of annotators.")
    ] = "",
    annotator: Annotated[str, typer.Option(help="Whose answers those are that do not say.")] = "",
    database: Where = None,
) -> None:
    """Take decisions that people made in Label Studio or CVAT."""
    from steadyeye.cli import review_work

    review_work.take(root, file, (tool, prefix, annotator), database)
