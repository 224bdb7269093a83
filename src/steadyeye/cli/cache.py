"""`steadyeye cache`: list and delete stored predictions of models."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steadyeye.cli.options import app
from steadyeye.cli.terminal import say, show_table
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of

if TYPE_CHECKING:
    from steadyeye.runner.cache.eviction import Group

cache = typer.Typer(help="List or delete the predictions that are cached for later runs.")
app.add_typer(cache, name="cache")

Folder = Annotated[
    str,
    typer.Option("--cache", help="Folder of the cache; default: as for `run`.", show_default=False),
]


@cache.command("ls")
def ls(folder: Folder = "") -> None:
    """List the entries: model, data, size, days since last use."""
    from steadyeye.runner.cache import eviction, settings

    place = _folder(folder)
    groups = eviction.groups(place)
    rows = [
        (
            f"{group.entries:,}",
            _size(group.bytes),
            f"{group.used:.1f}",
            group.model,
            group.data,
            group.mark,
        )
        for group in groups
    ]
    if rows:
        columns = ("answers", "size", "unused", "model", "data", "fingerprint")
        show_table(columns, rows, 3)
    say(f"{place}: {_describe_groups(groups)}, {_size(settings.limit())} at most")


@cache.command("prune")
def prune(
    folder: Folder = "",
    model: Annotated[
        str | None, typer.Option(help="Delete the entries of this model, by name or fingerprint.")
    ] = None,
    older: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            help="Delete the entries unused for this many days or hours, e.g. 30d or 12h.",
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--size", help="Delete the longest unused entries until this size is left, e.g. 2GB."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete all entries.")] = False,
) -> None:
    """Delete entries by model, age or size."""
    from steadyeye.runner.cache import eviction, settings

    place = _folder(folder)
    if everything:
        held_answers = eviction.clear(place)
        say(f"{place}: {'all entries deleted' if held_answers else 'no entries to delete'}")
        return
    if not (model or older or size):
        raise UsageError("nothing to delete; give --model, --older-than, --size or --all")
    oldest = settings.days(older) if older else None

    def is_wanted(group: "Group") -> bool:
        is_of_model = model is None or model in (group.model, group.mark)
        aged = oldest is None or group.used >= oldest
        return (model is not None or oldest is not None) and is_of_model and aged

    limit = settings.size(size) if size else None
    removed = eviction.prune(place, is_wanted, limit)
    say(f"{place}: deleted {_describe_groups(removed)}")


def _folder(text: str) -> Path:
    """The cache folder, the given one or that of `run`.

    Raises `UsageError` if it does not exist.
    """
    from steadyeye.runner.cache import settings

    folder = settings.folder(text)
    if folder is None:
        raise UsageError(
            f"{settings.VARIABLE} is off, so that there is no cache; give its folder with --cache"
        )
    return folder


def _describe_groups(groups: Sequence["Group"]) -> str:
    entries = sum(group.entries for group in groups)
    return f"{number_of(entries, 'answer')}, {_size(sum(group.bytes for group in groups))}"


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"
