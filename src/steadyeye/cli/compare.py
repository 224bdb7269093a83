"""The commands that judge: models against each other, and a model against what is required."""

from typing import Annotated

import typer

from steadyeye.cli.options import Formats, Metrics, app, join_options


@app.command()
def compare(
    runs: Annotated[list[str], typer.Argument(help="Folders of runs on the same data.")],
    out: Annotated[
        str, typer.Option(help="The file to write; its suffix sets the format.")
    ] = "compare.html",
    formats: Formats = "",
    metrics: Metrics = None,
) -> None:
    """Compare models on the same samples: paired differences and ranks."""
    from steadyeye.cli import compare_work

    compare_work.compare(runs, out, formats, join_options(metrics))


@app.command()
def gate(
    run: Annotated[str, typer.Argument(help="Folder of a run.")],
    require: Annotated[
        list[str] | None,
        typer.Option(help="A requirement, e.g. 'pm_k(k=10) >= 0.70'; may be repeated."),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="A base run on the same data to compare with.")
    ] = None,
    max_drop: Annotated[
        str | None, typer.Option(help="Largest allowed drop from the base, e.g. 0.02 or 2%.")
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(help="Metrics to compare with the base; default: those of --require."),
    ] = None,
    least: Annotated[int, typer.Option("--min", min=0, help="Smallest n that is accepted.")] = 0,
    junit: Annotated[str | None, typer.Option(help="Write the results as JUnit XML.")] = None,
    github: Annotated[
        bool, typer.Option("--github", help="Print annotations for GitHub Actions.")
    ] = False,
) -> None:
    """Exit with 1 unless the 95 % interval meets every requirement."""
    from steadyeye.cli import compare_work

    asked = compare_work.GateOptions(require or (), join_options(metrics), max_drop, least)
    if not compare_work.gate(run, against, asked, junit, github):
        raise typer.Exit(1)
