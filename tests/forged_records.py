"""Records of a run as an honest writer with other things to say would have left them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from steadyeye.predictions.cell import open_cell
from steadyeye.predictions.record import found_in, write_record


def forge_record(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes what a record says and gives it the checksum of that."""
    content = found_in(path)
    assert content is not None
    change(content)
    write_record(path, content)


def forge_cell(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes what a sealed cell says that it is, and seals it as that."""
    forge_record(folder / "cell.json", change)
    mark = open_cell(folder).fingerprint
    forge_record(folder / "seal.json", lambda seal: seal.update(cell=mark))
