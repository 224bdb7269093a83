"""`steadyeye cache`: what is kept of models' answers, and taking it out."""

from typing import Annotated

import typer

from steadyeye.cli.options import app

cache = typer.Typer(help="Answers of models that are kept for the next run.", no_args_is_help=True)
app.add_typer(cache, name="cache")

Folder = Annotated[
    str, typer.Option("--cache", help="The folder; as for `run` if left out.", show_default=False)
]


@cache.command("ls")
def ls(folder: Folder = "") -> None:
    """List what is kept: the model, the data, how much, and when it was last of use."""
    from steadyeye.cli import cache_work

    cache_work.ls(folder)


@cache.command("prune")
def prune(
    folder: Folder = "",
    model: Annotated[
        str | None, typer.Option(help="Take out what is of this model, by name or fingerprint.")
    ] = None,
    older: Annotated[
        str | None, typer.Option("--older-than", help="… not used for so long, e.g. 30d or 12h.")
    ] = None,
    size: Annotated[
        str | None, typer.Option("--size", help="… longest unused until so much is left, e.g. 2GB.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Take out everything.")] = False,
) -> None:
    """Take out what is of a model, what is old, or what is longest unused."""
    from steadyeye.cli import cache_work

    cache_work.prune(folder, cache_work.Which(model, older, size, everything))
