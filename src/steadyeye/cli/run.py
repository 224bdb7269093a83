"""The commands of `steadyeye`. Heavy packages are imported by the command that needs them."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from steadyeye.cli.options import (
    Address,
    Batch,
    Cache,
    ClassList,
    ClassMap,
    Data,
    Engine,
    Formats,
    JobFile,
    Levels,
    Metrics,
    Models,
    NoCache,
    OnError,
    Operators,
    Out,
    Overwrite,
    Quiet,
    Reduce,
    Shown,
    Workers,
    app,
    choose_progress,
    flags,
    join_options,
)
from steadyeye.core.storage.files import place


class Kind(StrEnum):
    """What `steadyeye ls` lists."""

    models = "models"
    sources = "sources"
    metrics = "metrics"
    analyses = "analyses"
    operators = "operators"
    probes = "probes"


@app.command()
def run(
    context: typer.Context,
    job: JobFile = None,
    model: Models = None,
    data: Data = None,
    out: Out = None,
    overwrite: Overwrite = False,
    metrics: Metrics = None,
    class_map: ClassMap = None,
    class_list: ClassList = None,
    reduce: Reduce = None,
    on_error: OnError = None,
    batch: Batch = None,
    workers: Workers = None,
    engine: Engine = None,
    address: Address = None,
    cache: Cache = None,
    no_cache: NoCache = False,
    progress: Shown = "bar",
    quiet: Quiet = False,
) -> None:
    """Evaluate models on data. If it stops, the same command resumes it."""
    from steadyeye.cli import run_work

    run_work.run(job, flags(context), choose_progress(context))


@app.command()
def degrade(
    context: typer.Context,
    job: JobFile = None,
    model: Models = None,
    data: Data = None,
    out: Out = None,
    overwrite: Overwrite = False,
    operators: Operators = None,
    levels: Levels = None,
    images: Annotated[
        str, typer.Option(help="Images that count: 'right' at level 0, or 'all'.")
    ] = "right",
    failure_points: Annotated[
        str, typer.Option(help="Accuracy thresholds of the failure points.")
    ] = "0.9,0.5,0.1",
    fast: Annotated[
        bool, typer.Option("--fast", help="Only the failure points; about a tenth of the time.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of the operators; default: 0.")
    ] = None,
    class_map: ClassMap = None,
    class_list: ClassList = None,
    reduce: Reduce = None,
    on_error: OnError = None,
    batch: Batch = None,
    workers: Workers = None,
    engine: Engine = None,
    address: Address = None,
    cache: Cache = None,
    no_cache: NoCache = False,
    progress: Shown = "bar",
    quiet: Quiet = False,
) -> None:
    """Degrade images level by level: accuracy profiles, failure points. Resumes like `run`."""
    from steadyeye.cli import run_work

    run_work.degrade(job, flags(context), images, failure_points, choose_progress(context))


@app.command()
def picture(
    image: Annotated[Path, typer.Argument(help="An image file.")],
    operators: Operators = None,
    levels: Annotated[
        str | None,
        typer.Option(
            help="Levels: first:last:step or a list; default: 0,5,10,20,30, or all up to 5."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="The file to write; its suffix sets the format.")
    ] = Path("sheet.png"),
    model: Annotated[
        str | None, typer.Option(help="Resize for this model; needed for gradient_descent.")
    ] = None,
    size: Annotated[int, typer.Option(help="Image side in pixels, if there is no --model.")] = 224,
    seed: Annotated[int, typer.Option(help="Random seed of the operators.")] = 0,
) -> None:
    """Write one image under operators and levels as a contact sheet."""
    from steadyeye.cli import run_work

    run_work.picture(
        image, join_options(operators) or "all", levels, out, model=model, size=size, seed=seed
    )


@app.command()
def check(
    context: typer.Context,
    job: JobFile = None,
    model: Models = None,
    data: Data = None,
    out: Out = None,
    metrics: Metrics = None,
    operators: Operators = None,
    levels: Levels = None,
    class_map: ClassMap = None,
    class_list: ClassList = None,
    reduce: Reduce = None,
    on_error: OnError = None,
    batch: Batch = None,
    workers: Workers = None,
    engine: Engine = None,
    address: Address = None,
    cache: Cache = None,
    no_cache: NoCache = False,
) -> None:
    """Check a job without inference: what it would do, or every error in it."""
    from steadyeye.cli import run_work

    run_work.check(job, flags(context))


@app.command()
def score(
    context: typer.Context,
    predictions: Annotated[
        str, typer.Argument(help="JSON: sample id → scores, class index or class name.")
    ],
    data: Data = None,
    out: Out = None,
    classes: Annotated[
        str | None, typer.Option(help="Classes of the scores: imagenet1k or a class file.")
    ] = None,
    category_ids: Annotated[
        str | None,
        typer.Option(
            help="Category ids of detections: 'data', or the number of the first class, 0 or 1."
        ),
    ] = None,
    metrics: Metrics = None,
    class_map: ClassMap = None,
    class_list: ClassList = None,
    reduce: Reduce = None,
    progress: Shown = "bar",
    quiet: Quiet = False,
) -> None:
    """Score saved predictions, without the model and the images."""
    from steadyeye.cli import run_work

    asked = {**flags(context), "models": [str(place(predictions))]}
    run_work.score(predictions, (classes, category_ids), asked, choose_progress(context))


@app.command()
def report(
    runs: Annotated[list[str], typer.Argument(help="Folders of runs.")],
    out: Annotated[
        str, typer.Option(help="The file to write; its suffix sets the format.")
    ] = "report.html",
    formats: Formats = "",
    metrics: Metrics = None,
    analyses: Annotated[
        list[str] | None,
        typer.Option(help="Analyses beside the default ones; `steadyeye ls analyses` lists all."),
    ] = None,
) -> None:
    """Write one report of one or more runs."""
    from steadyeye.cli import run_work

    run_work.report(runs, out, formats, join_options(metrics), join_options(analyses))


@app.command()
def ls(kind: Annotated[Kind, typer.Argument(help="The kind to list.")]) -> None:
    """List models, sources, metrics, analyses or operators."""
    from steadyeye.cli import run_work

    run_work.ls(kind.value)


@app.command(name="check-plugin")
def check_plugin(
    kind: Annotated[Kind, typer.Argument(help="What it is.")],
    plugin: Annotated[
        str, typer.Argument(help="Its name, or path/to/file.py:name, with arguments if it has any.")
    ],
    of_run: Annotated[
        str | None,
        typer.Option("--run", help="A run to try a metric or analysis on; default: made-up rows."),
    ] = None,
) -> None:
    """Check that a plugin of your own does what all of its kind do."""
    from steadyeye.cli import run_work

    run_work.check_plugin(kind.value, plugin, of_run)


@app.command()
def classmap(
    source: Annotated[
        str, typer.Option("--from", help="The model's classes: imagenet1k or a file.")
    ],
    target: Annotated[str, typer.Option("--to", help="The data's classes: vid30, ytbb or a file.")],
) -> None:
    """Print a class map (model → data) as CSV, to edit and use as --class-map."""
    from steadyeye.cli import run_work

    run_work.classmap(source, target)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Measure how steady a vision model is under natural change."""
    if version:
        from steadyeye import __version__

        typer.echo(__version__)
        raise typer.Exit
