"""`steadyeye explain`: why a detector is confidently wrong."""

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
def explain(
    context: typer.Context,
    model: Models = None,
    data: Data = None,
    reference: Annotated[
        str | None, typer.Option(help="Reference data for the correct detections; default: --data.")
    ] = None,
    analyses: Annotated[
        str, typer.Option(help="Analyses, e.g. 'patch_shuffle(repeats=5), background'.")
    ] = "patch_shuffle",
    out: Out = None,
    score: Annotated[float, typer.Option(help="Confidence threshold of a mistake.")] = 0.8,
    limit: Annotated[
        int | None, typer.Option(help="Maximum number of mistakes, drawn at random.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed; default: 0.")] = None,
    class_map: ClassMap = None,
    on_error: OnError = None,
    batch: Batch = None,
    workers: Workers = None,
    cache: Cache = None,
    no_cache: NoCache = False,
    progress: Shown = "bar",
    quiet: Quiet = False,
) -> None:
    """Explain a detector's confident mistakes. Resumes like `run`."""
    from steadyeye.cli import run_work
    from steadyeye.explain.run import Explaining

    how = Explaining(analyses, reference, score, limit)
    run_work.explain(how, flags(context), choose_progress(context))
