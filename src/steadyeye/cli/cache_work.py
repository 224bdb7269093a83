"""What `steadyeye cache` does."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steadyeye.cli.terminal import show, show_table
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.runner.cache import eviction, settings
from steadyeye.runner.cache.eviction import Group


@dataclass(frozen=True)
class Which:
    """What is to be taken out; `model`: a name or a fingerprint, `older`: an age, `size`: bytes."""

    model: str | None
    older: str | None
    size: str | None
    everything: bool


def ls(given: str) -> None:
    """`steadyeye cache ls`: a line a run and model, used last first."""
    folder = _folder(given)
    found = eviction.groups(folder)
    rows = [
        (
            f"{each.entries:,}",
            _size(each.bytes),
            f"{each.used:.1f}",
            each.model,
            each.data,
            each.mark,
        )
        for each in found
    ]
    if rows:
        columns = ("answers", "size", "unused", "model", "data", "fingerprint")
        show_table(columns, rows, 3)
    show(f"{folder}: {_describe_groups(found)}, {_size(settings.limit())} at most")


def prune(given: str, which: Which) -> None:
    """`steadyeye cache prune`."""
    folder = _folder(given)
    if which.everything:
        there = eviction.clear(folder)
        show(f"{folder}: {'emptied' if there else 'there was nothing'}")
        return
    if not (which.model or which.older or which.size):
        raise UsageError("say what to take out: --model, --older-than, --size or --all")
    oldest = settings.days(which.older) if which.older else None

    def is_wanted(group: Group) -> bool:
        named = which.model is None or which.model in (group.model, group.mark)
        aged = oldest is None or group.used >= oldest
        return (which.model is not None or oldest is not None) and named and aged

    most = settings.size(which.size) if which.size else None
    gone = eviction.prune(folder, is_wanted, most)
    show(f"{folder}: taken out {_describe_groups(gone)}")


def _folder(given: str) -> Path:
    folder = settings.folder(given)
    if folder is None:
        raise UsageError(f"{settings.VARIABLE} is off; name the folder with --cache")
    return folder


def _numbers(group: Group) -> tuple[str, str, str]:
    return f"{group.entries:,}", _size(group.bytes), f"{group.used:.1f} d"


def _describe_groups(groups: Sequence[Group]) -> str:
    entries = sum(group.entries for group in groups)
    return f"{number_of(entries, 'answer')}, {_size(sum(group.bytes for group in groups))}"


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"
