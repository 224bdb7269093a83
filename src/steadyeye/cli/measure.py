"""`steadyeye measure`: the image pass over the pm-sets of a run."""

from typing import Annotated

import typer

from steadyeye.cli.options import Quiet, Shown, Workers, app, choose_progress


@app.command()
def measure(
    context: typer.Context,
    runs: Annotated[list[str], typer.Argument(help="Folders of runs.")],
    workers: Workers = None,
    progress: Shown = "bar",
    quiet: Quiet = False,
) -> None:
    """Measure motion, blur and brightness of the frames of runs. Resumes like `run`."""
    from steadyeye.cli import run_work

    run_work.measure(runs, workers or 0, choose_progress(context))
