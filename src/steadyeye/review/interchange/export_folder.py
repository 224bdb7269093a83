"""The folder of an export, whose files are written aside and then moved there.

An export that was stopped while it was written has changed nothing. One that was stopped while its
files were moved is finished by the next export to the folder.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import (
    encode,
    explain_failure,
    make_folder,
    sync_folder,
    write_file,
)
from steadyeye.core.storage.sha256sums import merge_sums

PART, WHOLE = ".export.part", ".export.whole"
FORMATS = ".formats.json"
"""Lists the formats in a folder `WHOLE`; the last file that leaves it."""
MARKS: Mapping[str, str] = {
    "set": "set.json",
    "coco": "annotations.json",
    "pmsets": "metadata",
    "mot": "labels.txt",
}
"""Format → what a folder has that holds such an export; the others may be written again."""


@contextmanager
def stage_export(out: Path, formats: Sequence[str]) -> Iterator[Path]:
    """A folder for the files of an export, which are moved to `out` after the block.

    Raises `UsageError` where `out` holds an export in one of the formats already, unless it is what
    an export that was stopped had begun to move.
    """
    with explain_failure(out):
        moved = _move_files(out)
        part = out / PART
        if part.exists():
            shutil.rmtree(part)
        for name in formats:
            if name in MARKS and name not in moved and (out / MARKS[name]).exists():
                kind = "a set" if name == "set" else f"an export as {name}"
                raise UsageError(f"'{out}' holds {kind} already; choose another --out")
        is_new = not out.exists()
        make_folder(part)
    try:
        yield part
        merge_sums(part, out)
        write_file(part / FORMATS, encode({"formats": list(formats)}))
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):
            if is_new:
                out.rmdir()
        raise
    with explain_failure(out):
        part.rename(out / WHOLE)
        _move_files(out)


def _move_files(out: Path) -> Sequence[str]:
    """Moves the files of an export that is whole to `out`; returns its formats, () for none."""
    whole = out / WHOLE
    if not (whole / FORMATS).is_file():
        return ()
    formats: list[str] = json.loads((whole / FORMATS).read_bytes())["formats"]
    files = [path.relative_to(whole) for path in sorted(whole.rglob("*")) if path.is_file()]
    for name in files:
        if name != Path(FORMATS):
            make_folder(out / name.parent)
            with explain_failure(out / name):
                (whole / name).replace(out / name)
    for folder in {out / name.parent for name in files}:
        sync_folder(folder / "*")
    (whole / FORMATS).unlink()
    shutil.rmtree(whole)
    return formats
