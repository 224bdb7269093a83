"""The app that commands register with, and the options that several of them share."""

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="How steady a vision model stays when the world changes naturally.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

JobFile = Annotated[Path | None, typer.Argument(help="A job in TOML; flags go over what it says.")]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="A model, e.g. \"timm(name='resnet50.a1_in1k')\"."),
]
Data = Annotated[
    list[str] | None, typer.Option("--data", help="Data, e.g. \"video(path='clip.mp4', k=10)\".")
]
Out = Annotated[str | None, typer.Option("--out", help="The folder of the run.")]
Metrics = Annotated[
    str | None, typer.Option(help="Metrics, e.g. 'accuracy, pm_k(k=5)'; all that fit if left out.")
]
ClassMap = Annotated[str | None, typer.Option(help="A file that maps model to data classes.")]
Reduce = Annotated[str | None, typer.Option(help="Join member scores by 'max' (default) or 'sum'.")]
OnError = Annotated[
    str | None, typer.Option(help="A sample that cannot be decoded: 'stop' (default) or 'skip'.")
]
Batch = Annotated[
    int | None, typer.Option(help="Images handed to the model at a time [16; on a GPU 64].")
]
Workers = Annotated[int | None, typer.Option(help="Threads; one a core if left out.")]
Engine = Annotated[
    str | None,
    typer.Option(
        help="Where inference runs: 'local' (default), 'local(processes=4)', 'ray(gpus=1)'."
    ),
]
Address = Annotated[
    str | None, typer.Option(help="The Ray cluster, e.g. 'auto'; one on this machine if left out.")
]
Operators = Annotated[
    str | None, typer.Option(help="Operators, e.g. 'jpeg, white_fog'; all if left out.")
]
Levels = Annotated[str | None, typer.Option(help="Levels, first:last:step or 5,10,20 [0:30].")]
Cache = Annotated[
    str | None, typer.Option("--cache", help="The folder where answers of models are kept.")
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Ask the model about every frame, and keep nothing.")
]
Shown = Annotated[
    str, typer.Option("--progress", help="bar, json (a line each on stderr) or none.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")]
Formats = Annotated[str, typer.Option("--format", help="html, md, json, csv; several with commas.")]

OF_JOB = {
    "model": "models",
    **{name: name for name in ("data", "out", "metrics", "class_map", "reduce", "on_error")},
    **{name: name for name in ("batch", "workers", "engine", "address", "cache")},
    **{name: name for name in ("operators", "levels", "seed", "fast")},
}
"""The options that a job knows, and what it calls them."""


def flags(context: typer.Context) -> dict[str, Any]:
    """What was asked of a job, by its own names; what was left out is None or empty."""
    found = {OF_JOB[name]: value for name, value in context.params.items() if name in OF_JOB}
    if context.params.get("no_cache"):
        found["cache"] = "off"
    if "fast" in found:
        # that it was not asked for says nothing against a job that does
        found["fast"] = found["fast"] or None
    return found


def shown(context: typer.Context) -> str:
    """How progress is shown: as --progress says, with --quiet not at all."""
    return "none" if context.params["quiet"] else str(context.params["progress"])
