"""Shards that are not what was written, taken away so that they are computed again."""

import json

from steadyeye.predictions.cell import Cell, sha256
from steadyeye.predictions.checksum import intact


def mend(cell: Cell) -> str:
    """Removes the shards of a cell that were altered, and its seal with them.

    Returns one line that says which, '' where all is well. Those of a sealed cell are held against
    its seal, those of another against the checksum that each carries.
    """
    seal = cell.folder / "seal.json"
    bad = _against_seal(cell) if cell.sealed else _by_themselves(cell)
    if not bad:
        return ""
    # the seal first: what is stopped here is a cell that is not complete
    seal.unlink(missing_ok=True)
    for shard in bad:
        cell.path(shard).unlink(missing_ok=True)
    names = ", ".join(cell.path(shard).name for shard in bad[:3])
    more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
    return (
        f"{cell.folder.name}: {len(bad)} of {cell.shards} shards were not what was written "
        f"({names}{more}); computed again"
    )


def _against_seal(cell: Cell) -> list[int]:
    try:
        seal = json.loads((cell.folder / "seal.json").read_text(encoding="utf-8"))
        sealed = {entry["file"]: entry["sha256"] for entry in seal["shards"]}
    except (ValueError, KeyError, TypeError):
        sealed = {}  # the seal itself was altered
    paths = map(cell.path, range(cell.shards))
    return [
        shard
        for shard, path in enumerate(paths)
        if not path.is_file() or sealed.get(path.name) != sha256(path)
    ]


def _by_themselves(cell: Cell) -> list[int]:
    return [shard for shard in cell.finished() if not intact(cell.path(shard).read_bytes())]
