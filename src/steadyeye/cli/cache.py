"""`steadyeye cache`: what is kept of models' answers, and taking it out."""

from typing import Annotated

import typer

from steadyeye.cli.options import app

cache = typer.Typer(help="Predictions that are kept for later runs.")
app.add_typer(cache, name="cache")

Folder = Annotated[
    str,
    typer.Option("--cache", help="Folder of the cache; default: as for `run`.", show_default=False),
]


@cache.command("ls")
def ls(folder: Folder = "") -> None:
    """List the entries: model, data, size, days since last use."""
    from steadyeye.cli import cache_work

    cache_work.ls(folder)


@cache.command("prune")
def prune(
    folder: Folder = "",
    model: Annotated[
        str | None, typer.Option(help="Delete the entries of this model (name or fingerprint).")
    ] = None,
    older: Annotated[
        str | None,
        typer.Option("--older-than", help="Delete entries unused for this long, e.g. 30d or 12h."),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option("--size", help="Delete the longest unused until this size is left, e.g. 2GB."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete everything.")] = False,
) -> None:
    """Delete entries by model, age or size."""
    from steadyeye.cli import cache_work

    cache_work.prune(folder, cache_work.Which(model, older, size, everything))
