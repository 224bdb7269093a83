"""The runs below a folder, as their small records say: no shard is read and nothing computed."""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.predictions.read import MEND
from steadyeye.predictions.record import CELL, RUN, SEAL, protected, read_record
from steadyeye.report.run_list import (
    DAMAGED,
    FINISHED,
    OLDER,
    UNFINISHED,
    ListedRun,
    Number,
    Row,
)

INSIDE = ("then",)
"""The folders within the folder of a run that hold runs of their own."""

TAIL = 4096  # bytes at the end of log.jsonl, in which its last line lies

WATCHED = ("run.json", "results.json", "report.html", "log.jsonl", "model.json", "weights.pt")

MALFORMED = (
    *(UsageError, OSError, ValueError, KeyError, IndexError, TypeError, AttributeError),
    RecursionError,
)
"""What reading a file raises that is not as any version writes it."""

Stamp = tuple[tuple[str, int, int], ...]


class RunIndex:
    """The runs below a folder; one whose records are as they were is not read again.

    Links to other folders are not followed. `root`: absolute.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._known: dict[str, tuple[Stamp, ListedRun]] = {}

    def runs(self) -> tuple[ListedRun, ...]:
        """The runs that are there now, by path."""
        known, self._known = self._known, {}
        for folder in run_folders(self.root):
            path = folder.relative_to(self.root).as_posix()
            stamp = self.stamp(path)
            before = known.get(path)
            same = before is not None and before[0] == stamp
            self._known[path] = (stamp, before[1] if same and before else describe(folder, path))
        return tuple(self._known[path][1] for path in sorted(self._known))

    def stamp(self, path: str) -> Stamp:
        """What the disk says of the records of a run, which changes whenever they do."""
        return _stamp(self.root / path)


def run_folders(root: Path) -> Iterator[Path]:
    """Every folder with a run.json below `root`, itself included, that no link leads to."""
    for folder, inner, files in os.walk(root):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        if "run.json" in files:
            yield Path(folder)
            inner[:] = [name for name in inner if name in INSIDE]


def describe(folder: Path, path: str) -> ListedRun:
    """What the records of a run say; one that is damaged is told in a line, never raised."""
    found = ListedRun(
        path, "unknown", (), (), DAMAGED, "", _date(folder), (folder / "report.html").is_file()
    )
    try:
        record = read_record(folder / "run.json", RUN, ("job", "provenance"))
        models, data = _about(record)
        found = replace(found, kind=_kind(record), models=models, data=data)
        state, reason = _state(folder, record)
    except MALFORMED as error:
        return replace(found, reason=_line(error))
    rows, problem = _rows(folder / "results.json")
    return replace(found, state=state, reason=reason or problem, rows=rows)


def _about(record: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The models and the data of a run, by the names of its cells; of a training as it was asked.

    A cell of a probe, `MODEL@DATA+PROBE`, is of the same data.
    """
    if record.get("kind") == "finetune":
        return tuple(map(str, _listed(record["job"]["model"]))), tuple(
            map(str, _listed(record["job"]["data"]))
        )
    pairs = [str(name).rpartition("@") for name in record["cells"]]
    models = dict.fromkeys(model for model, _, _ in pairs)
    return tuple(models), tuple(dict.fromkeys(data.partition("+")[0] for *_, data in pairs))


def _kind(record: Mapping[str, Any]) -> str:
    """What a run is, by the command that made it."""
    job = record["job"]
    if record.get("kind") == "finetune":
        return "training"
    if "explain" in record:
        return "explanation"
    if job.get("operators"):
        return "failure points" if job.get("fast") else "degradation"
    return "saved predictions" if record.get("saved") else "evaluation"


def _state(folder: Path, record: Mapping[str, Any]) -> tuple[str, str]:
    """Whether a run is finished, and a line on what is to be known of that.

    Raises `UsageError` where a record is damaged or a shard missing.
    """
    if record.get("kind") == "finetune":
        if (folder / "weights.pt").is_file() and (folder / "model.json").is_file():
            return FINISHED, ""
        return UNFINISHED, "the training is not finished; the same command goes on with it"
    done = total = begun = sealed = 0
    for name in record["cells"]:
        rounds = record.get("rounds", {}).get(name, [name])
        parts = list(filter(None, (_shards(folder / "cells" / each) for each in rounds)))
        begun += bool(rounds) and len(parts) == len(rounds)
        sealed += bool(rounds) and sum(part[2] for part in parts) == len(rounds)
        done += sum(part[0] for part in parts)
        total += sum(part[1] for part in parts)
    cells = len(record["cells"])
    if sealed < cells:
        later = f", {cells - begun} of {cells} models × data not begun" if begun < cells else ""
        again = "the same command goes on with it"
        return UNFINISHED, f"{done:,} of {total:,} shards{later}; {again}"
    if not protected(folder / "run.json"):
        return OLDER, "of an earlier version, whose records bear no checksum"
    return FINISHED, ""


def _shards(cell: Path) -> tuple[int, int, bool] | None:
    """How many shards of a cell are written, of how many, and whether it is sealed.

    None where it is not begun. Raises `UsageError` where a record is damaged or a shard missing.
    """
    try:
        names = {entry.name for entry in os.scandir(cell)}
    except FileNotFoundError:
        return None
    if "cell.json" not in names:
        raise UsageError(f"'{cell / 'cell.json'}' is missing; {CELL}")
    if "seal.json" in names:
        listed = read_record(cell / "seal.json", SEAL, ("shards",))["shards"]
        missing = [entry["file"] for entry in listed if entry["file"] not in names]
        if missing:
            raise UsageError(f"the shard '{cell / missing[0]}' is missing; {MEND}")
        return len(listed), len(listed), True
    identity = read_record(cell / "cell.json", CELL, ("rows", "shard_rows"))
    total = -(-int(identity["rows"]) // int(identity["shard_rows"]))
    return min(sum(name.endswith(".seal") for name in names), total), total, False


def _rows(path: Path) -> tuple[tuple[Row, ...], str]:
    """The numbers that a run stores, none where it stores none; and what is wrong with them."""
    try:
        content = json.loads(path.read_bytes())
        return tuple(map(_row, content["results"])), ""
    except FileNotFoundError:
        return (), ""
    except MALFORMED:
        return (), "results.json is damaged; `steadyeye report RUN --out RUN/results.json` mends it"


def _row(content: Mapping[str, Any]) -> Row:
    numbers = (
        Number(
            str(name),
            float(each["value"]),
            _finite(each["low"]),
            _finite(each["high"]),
            int(each["n"]),
            str(each["unit"]),
        )
        for name, each in content["metrics"].items()
        if _finite(each["value"]) is not None
    )
    return Row(str(content["model"]), str(content["data"]), tuple(numbers))


def _finite(value: Any) -> float | None:
    """The number, None where there is none."""
    return None if value is None or not math.isfinite(value) else float(value)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _line(error: BaseException) -> str:
    """An error as one line."""
    if isinstance(error, OSError):
        return f"'{error.filename}' cannot be read: {error.strerror}"
    if isinstance(error, UsageError):
        return " ".join(str(error).split())
    return f"run.json is not as any version writes it ({type(error).__name__}); {RUN}"


def _date(folder: Path) -> float | None:
    """When a run last wrote to its log, else when its run.json was written; seconds since 1970."""
    try:
        with (folder / "log.jsonl").open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - TAIL, 0))
            return float(json.loads(file.read().splitlines()[-1])["time"])
    except (OSError, ValueError, LookupError, TypeError):
        pass
    try:
        return (folder / "run.json").stat().st_mtime
    except OSError:
        return None


def _stamp(folder: Path) -> Stamp:
    found = [_of(folder / name) for name in WATCHED]
    try:
        cells = sorted(entry.path for entry in os.scandir(folder / "cells"))
    except OSError:
        cells = []
    for cell in cells:
        # the folder's own time changes with every file that comes or goes
        found += [_of(Path(cell)), _of(Path(cell) / "seal.json"), _of(Path(cell) / "cell.json")]
    return tuple(found)


def _of(path: Path) -> tuple[str, int, int]:
    try:
        said = os.stat(path)
    except OSError:
        return path.name, 0, -1
    return path.name, said.st_mtime_ns, said.st_size


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run, not one with runs below it."""
    return (folder / "run.json").is_file()
