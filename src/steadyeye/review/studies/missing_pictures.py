"""The sets of a label study whose pictures cannot be made: nobody can say what they show.

They count as sets that nobody could label, which widens both ends, since the labels after the first
set without one would otherwise never count. They are tried again at every start.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from steadyeye.core.storage.files import encode, write_file
from steadyeye.core.storage.text_files import read_json
from steadyeye.metrics.label_studies.answered_sets import UNKNOWN

FILE = "no-pictures.json"


def read_missing(root: Path) -> dict[str, str]:
    """Set → why its pictures could not be made, of a study in a folder.

    Raises `UsageError` for a file that cannot be read.
    """
    path = root / FILE
    content = read_json(path, "sets without pictures") if path.is_file() else {}
    known = content if isinstance(content, dict) else {}
    return {name: str(why) for name, why in known.items()}


def write_missing(root: Path, missing: Mapping[str, str]) -> None:
    """Writes the same; of none there is no file."""
    if missing:
        write_file(root / FILE, encode(missing))
    else:
        (root / FILE).unlink(missing_ok=True)


def list_missing_labels(names: Iterable[str], of_images: bool) -> dict[str, tuple[str, ...]]:
    """Set → the label of one that nobody could label; `of_images`: of single images."""
    return dict.fromkeys(names, (UNKNOWN,) if of_images else ())
