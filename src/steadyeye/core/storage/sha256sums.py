"""`SHA256SUMS` of a folder that we wrote, as `sha256sum --check` reads it."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import sha256, write_output

NAME = "SHA256SUMS"
LINE = re.compile(r"([0-9a-f]{64})  (.+)")
NOTHING: Mapping[str, bytes] = MappingProxyType({})


def write_sums(folder: Path, files: Iterable[Path], coming: Mapping[str, bytes] = NOTHING) -> None:
    """Writes the sums of `files`, which are in `folder`, beside those already listed.

    `coming`: the content of files that are not written yet, by name.
    """
    sums = read_sums(folder)
    sums |= {path.relative_to(folder).as_posix(): sha256(path) for path in files}
    sums |= {name: hashlib.sha256(content).hexdigest() for name, content in coming.items()}
    _write(folder, sums)


def _write(folder: Path, sums: Mapping[str, str]) -> None:
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    write_output(folder / NAME, lines.encode())


def merge_sums(folder: Path, other: Path) -> None:
    """Adds missing sums of another folder to those of a folder, if it has any."""
    if (folder / NAME).is_file():
        _write(folder, {**read_sums(other), **read_sums(folder)})


def read_sums(folder: Path) -> dict[str, str]:
    """Name → SHA-256 of the files of a folder; empty if none are listed."""
    path = folder / NAME
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    lines = (LINE.fullmatch(line) for line in text.split("\n"))
    return {line[2]: line[1] for line in lines if line}


def check_sums(folder: Path, needs: Sequence[str] = ()) -> None:
    """Reads every existing file of a folder that has a sum, or only those of `needs`.

    Raises `UsageError` with the number of changed files and the first one; also for one of `needs`
    without a sum in a folder that has sums.
    """
    if not (folder / NAME).is_file():
        return
    sums = read_sums(folder)
    names = [name for name in needs or sums if (folder / name).is_file()]
    if unlisted := [name for name in names if name not in sums]:
        raise UsageError(_describe_fault(folder, unlisted[0], "is not listed", unlisted))
    if altered := [name for name in names if sha256(folder / name) != sums[name]]:
        raise UsageError(
            _describe_fault(folder, altered[0], "does not match its checksum", altered)
        )


def find_listing(path: Path) -> Path | None:
    """The folder, that of a file or the one above, whose sums list the file; None without one."""
    for folder in (path.parent, path.parent.parent):
        if path.relative_to(folder).as_posix() in read_sums(folder):
            return folder
    return None


def _describe_fault(folder: Path, name: str, fault: str, every: Sequence[str]) -> str:
    more = f", the first of {len(every):,} such files" if len(every) > 1 else ""
    return (
        f"'{folder / name}' {fault} by '{folder / NAME}'{more}; export the set again, or delete "
        f"{NAME} where the change is meant"
    )
