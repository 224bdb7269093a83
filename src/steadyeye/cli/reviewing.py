"""The commands that build a reviewed set."""

from pathlib import Path
from typing import Annotated

import typer

from steadyeye.cli.options import Quiet, app

SetRoot = Annotated[Path, typer.Argument(help="The folder of a set.")]
Where = Annotated[
    str | None, typer.Option("--database", help="postgresql://…; SQLite in the set if left out.")
]


@app.command()
def sample(
    videos: Annotated[list[Path], typer.Argument(help="Video files, or folders of them.")],
    out: Annotated[Path, typer.Option(help="The folder of the set.")],
    labels: Annotated[str | None, typer.Option(help="A sidecar of labels and cuts.")] = None,
    classes: Annotated[
        str | None, typer.Option(help="Classes to label with: vid30, ytbb, a file, or a,b,c.")
    ] = None,
    k: Annotated[int, typer.Option(help="Neighbours on each side, native frames.")] = 10,
    anchors: Annotated[int, typer.Option(help="Anchors a video.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the anchors.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Draw anchors and their neighbours from videos: a set for people to review."""
    from steadyeye.cli import review_work

    drawn = {"k": k, "anchors": anchors, "seed": seed, "labels": labels}
    review_work.sample(videos, out, classes, drawn, quiet)


@app.command()
def review(
    root: SetRoot,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at.")] = 8000,
    name: Annotated[
        list[str] | None, typer.Option("--reviewer", help="Adds a reviewer; several are allowed.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="The address people use, where a proxy stands before.")
    ] = None,
    database: Where = None,
) -> None:
    """Serve a set for review; prints one private link a reviewer, once."""
    from steadyeye.cli import review_work

    review_work.serve(root, (host, port, url), name or [], database)


@app.command("review-status")
def review_status(root: SetRoot, database: Where = None) -> None:
    """Say where a review stands: stages, people, agreement."""
    from steadyeye.cli import review_work

    review_work.status(root, database)


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
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave out what is not decided.")
    ] = False,
    database: Where = None,
) -> None:
    """Write what people accepted, as a set to evaluate: reviewed(root=…)."""
    from steadyeye.cli import review_work

    review_work.export(root, out, database, partial=partial)
