"""The commands that judge: models against each other, and a model against what is required."""

from typing import Annotated

import typer

from steadyeye.cli.options import Formats, Metrics, app, joined


@app.command()
def compare(
    runs: Annotated[list[str], typer.Argument(help="The folders of runs on the same data.")],
    out: Annotated[
        str, typer.Option(help="Where to write; the suffix is the format's.")
    ] = "compare.html",
    formats: Formats = "",
    metrics: Metrics = None,
) -> None:
    """Say which models are better, as far as the same samples can tell them apart."""
    from steadyeye.cli import judging

    judging.compare(runs, out, formats, joined(metrics))


@app.command()
def gate(
    run: Annotated[str, typer.Argument(help="The folder of a run.")],
    require: Annotated[
        list[str] | None,
        typer.Option(help="What must be shown, e.g. 'pm_k(k=10) >= 0.70'; may be repeated."),
    ] = None,
    against: Annotated[str | None, typer.Option(help="A run on the same data to hold to.")] = None,
    max_drop: Annotated[
        str | None, typer.Option(help="By how much it may be worse than that, e.g. 0.02 or 2%.")
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(help="Metrics to hold against it; those required if left out."),
    ] = None,
    least: Annotated[
        int, typer.Option("--min", min=0, help="The least n that shows anything.")
    ] = 0,
    junit: Annotated[str | None, typer.Option(help="Write the verdicts as JUnit XML.")] = None,
    github: Annotated[
        bool, typer.Option("--github", help="Print annotations for GitHub Actions.")
    ] = False,
) -> None:
    """Exit with 1 unless the data show what is required: the interval's bound counts."""
    from steadyeye.cli import judging

    asked = judging.Asked(require or (), joined(metrics), max_drop, least)
    if not judging.gate(run, against, asked, junit, github):
        raise typer.Exit(1)
