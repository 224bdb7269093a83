"""`steadyeye mine`: what detectors are confidently wrong about, as a set for people to review."""

from pathlib import Path
from typing import Annotated

import typer

from steadyeye.cli.options import (
    Batch,
    Cache,
    ClassMap,
    Data,
    Models,
    NoCache,
    OnError,
    Out,
    Quiet,
    Shown,
    Workers,
    app,
    choose_progress,
    flags,
)


@app.command()
def mine(
    context: typer.Context,
    given: Annotated[
        list[Path] | None,
        typer.Argument(help="Finished runs, or detections as COCO results."),
    ] = None,
    model: Models = None,
    data: Data = None,
    out: Out = None,
    score: Annotated[float, typer.Option(help="Confidence threshold of a mistake.")] = 0.8,
    causes: Annotated[
        str, typer.Option(help="Causes to include; 'unverified' is one more.")
    ] = "misclassification,out_of_distribution,background",
    rank: Annotated[str, typer.Option(help="Order by confidence or novelty.")] = "confidence",
    limit: Annotated[int, typer.Option(help="Maximum number of candidates per class.")] = 50,
    class_map: ClassMap = None,
    on_error: OnError = None,
    batch: Batch = None,
    workers: Workers = None,
    cache: Cache = None,
    no_cache: NoCache = False,
    progress: Shown = "bar",
    quiet: Quiet = False,
) -> None:
    """Find confident mistakes of detectors for review. Resumes like `run`."""
    from steadyeye.cli import mine_work

    named = tuple(each.strip() for each in causes.split(",") if each.strip())
    how = {"score": score, "causes": named, "rank": rank, "limit": limit}
    mine_work.mine(given or [], flags(context), how, choose_progress(context))
