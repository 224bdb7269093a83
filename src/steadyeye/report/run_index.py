"""The runs below a folder, from their small records: no shard is read and nothing is computed.

The folder may be in a store: it is listed in one request, and only records whose version changed
are read again.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place, map_requests
from steadyeye.core.storage.remote_path import Remote
from steadyeye.predictions.json_record import CELL, MEND, RUN, SEAL, is_protected, read_record
from steadyeye.report.render.run_list import (
    DAMAGED,
    FINISHED,
    MINING,
    OLDER,
    TRAINING,
    UNFINISHED,
    ListedRun,
    Number,
    RunRow,
)

INSIDE = ("then",)
"""The folders inside a run that contain further runs."""

TAIL = 4096  # bytes at the end of log.jsonl, in which its last line lies

WATCHED = (
    *("run.json", "results.json", "report.html", "log.jsonl", "model.json", "weights.pt"),
    "candidates.json",
)

MARKS = ("run.json", "candidates.json")
"""The files that identify the folder of a run or of mining."""

MALFORMED = (
    *(UsageError, OSError, ValueError, KeyError, IndexError, TypeError, AttributeError),
    RecursionError,
)
"""The errors of reading a malformed file."""

Stamp = tuple[tuple[str, int | str, int], ...]


class Files(Protocol):
    """The names and versions of the files below a folder."""

    def runs(self) -> Iterator[Place]:
        """Every folder of a run below it, itself included."""
        ...

    def names(self, folder: Place) -> frozenset[str]:
        """The names in a folder; empty if it does not exist."""
        ...

    def stamp(self, folder: Place) -> Stamp:
        """A value that changes whenever the records of a run change."""
        ...


class RunIndex:
    """The runs below a folder; a run with unchanged records is not read again.

    Links to other folders are not followed. `root`: absolute, or the URL of a store.
    """

    def __init__(self, root: Place) -> None:
        self.root: Place = root.resolve()
        self._known: dict[str, tuple[Stamp, ListedRun]] = {}

    def runs(self) -> tuple[ListedRun, ...]:
        """The present runs, by path. Raises `UsageError` if a store cannot be listed."""
        known, files = self._known, list_files(self.root)
        self._known, new = {}, []
        for folder in files.runs():
            path = _below(self.root, folder)
            stamp = files.stamp(folder)
            before = known.get(path)
            if before is not None and before[0] == stamp:
                self._known[path] = before
            else:
                new.append((folder, path, stamp))

        def read(place: tuple[Place, str, Stamp]) -> tuple[str, tuple[Stamp, ListedRun]]:
            folder, path, stamp = place
            return path, (stamp, describe(folder, path, files))

        self._known.update(map_requests(self.root, read, new))
        return tuple(self._known[path][1] for path in sorted(self._known))

    def stamp(self, path: str) -> Stamp:
        """The versions of the records of a run, which change whenever the records do."""
        return list_files(self.root).stamp(self.root / path)


def list_files(root: Place) -> Files:
    """The files below a folder; a store is listed in one request."""
    return _Disk(root) if isinstance(root, Path) else _Store(root)


class _Disk:
    """Files of this machine, which are read on request."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def runs(self) -> Iterator[Path]:
        for folder, inner, files in os.walk(self.root):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            if not {*MARKS}.isdisjoint(files):
                yield Path(folder)
                inner[:] = [name for name in inner if name in INSIDE]

    def names(self, folder: Place) -> frozenset[str]:
        try:
            return frozenset(entry.name for entry in os.scandir(str(folder)))
        except FileNotFoundError:
            return frozenset()

    def stamp(self, folder: Place) -> Stamp:
        path = Path(str(folder))
        stamps = [_of(path / name) for name in WATCHED]
        try:
            cells = sorted(entry.path for entry in os.scandir(path / "cells"))
        except OSError:
            cells = []
        for cell in map(Path, cells):
            # the folder's own time changes with every file that comes or goes
            stamps += [_of(cell), _of(cell / "seal.json"), _of(cell / "cell.json")]
        return tuple(stamps)


class _Store:
    """The objects of a store, from one listing."""

    def __init__(self, root: Remote) -> None:
        self.root = root
        self.inner: dict[str, dict[str, str]] = {}
        for url, version in root.versions().items():
            folder, _, name = url.rpartition("/")
            self.inner.setdefault(folder, {})[name] = version
            while len(folder) > len(root.url):
                folder, _, name = folder.rpartition("/")
                self.inner.setdefault(folder, {}).setdefault(name, "")

    def runs(self) -> Iterator[Remote]:
        todo = [self.root]
        while todo:
            folder = todo.pop()
            inner = sorted(name for name in self.names(folder) if not name.startswith("."))
            if not {*MARKS}.isdisjoint(inner):
                yield folder
                inner = [name for name in inner if name in INSIDE]
            todo += [folder / name for name in inner if str(folder / name) in self.inner]

    def names(self, folder: Place) -> frozenset[str]:
        return frozenset(self.inner.get(str(folder), ()))

    def stamp(self, folder: Place) -> Stamp:
        versions = self.inner.get(str(folder), {})
        stamps = [(name, versions.get(name, ""), 0) for name in WATCHED]
        for cell in sorted(self.names(folder / "cells")):
            files = self.inner.get(str(folder / "cells" / cell), {})
            stamps += [(f"{cell}/{name}", version, 0) for name, version in sorted(files.items())]
        return tuple(stamps)


def _below(root: Place, folder: Place) -> str:
    """The path of a folder below `root`, with "/"; "." for `root` itself."""
    if isinstance(root, Path):
        return Path(str(folder)).relative_to(root).as_posix()
    return str(folder)[len(str(root)) + 1 :] or "."


def describe(folder: Place, path: str, files: Files) -> ListedRun:
    """A run by its records; damage becomes a line, never an error."""
    names = files.names(folder)
    run = ListedRun(
        path, "unknown", (), (), DAMAGED, "", _date(folder, names), "report.html" in names
    )
    if "run.json" not in names:
        return _read_mined(folder, run)
    try:
        record = read_record(folder / "run.json", RUN, ("job", "provenance"))
        models, data = _about(record)
        run = replace(run, kind=_kind(record), models=models, data=data)
        state, reason = _state(folder, record, files)
    except MALFORMED as error:
        return replace(run, reason=_line(error))
    if "candidates.json" in names:
        return replace(_read_mined(folder, run), models=models, data=data)
    rows, problem = _rows(folder / "results.json")
    return replace(run, state=state, reason=reason or problem, rows=rows)


def _read_mined(folder: Place, run: ListedRun) -> ListedRun:
    """The result of `steadyeye mine` in a folder: its models, its data, and its size."""
    run = replace(run, kind=MINING)
    try:
        content = json.loads((folder / "candidates.json").read_bytes())
        mistakes = content["annotations"]
        models = dict.fromkeys(str(name) for item in mistakes for name in item["models"])
        data = dict.fromkeys(str(item["data"]) for item in content["images"])
        count = len(mistakes)
    except MALFORMED:
        return replace(run, reason="candidates.json is damaged; run `steadyeye mine` again")
    run = replace(run, models=tuple(models), data=tuple(data))
    if not run.report:
        again = "no report yet; run the same command again to finish it"
        return replace(run, state=UNFINISHED, reason=again)
    return replace(run, state=FINISHED, reason=number_of(count, "confident mistake"))


def _about(record: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The models and the data of a run, from the names of its cells; of a training from its job.

    A cell of a probe, `MODEL@DATA+PROBE`, is of the same data.
    """
    if record.get("kind") == "finetune":
        values = [record["job"][key] for key in ("model", "data")]
        models, data = (v if isinstance(v, list) else [v] for v in values)
        return tuple(map(str, models)), tuple(map(str, data))
    pairs = [str(name).rpartition("@") for name in record["cells"]]
    own = dict.fromkeys(model for model, _, _ in pairs)
    return tuple(own), tuple(dict.fromkeys(data.partition("+")[0] for *_, data in pairs))


def _kind(record: Mapping[str, Any]) -> str:
    """The kind of a run, by the command that made it."""
    job = record["job"]
    if record.get("kind") == "finetune":
        return TRAINING
    if "explain" in record:
        return "explanation"
    if job.get("operators"):
        return "failure points" if job.get("fast") else "degradation"
    return "saved predictions" if record.get("saved") else "evaluation"


def _state(folder: Place, record: Mapping[str, Any], files: Files) -> tuple[str, str]:
    """Whether a run is finished, and a line on its state.

    Raises `UsageError` if a record is damaged or a shard is missing.
    """
    if record.get("kind") == "finetune":
        if {"weights.pt", "model.json"} <= files.names(folder):
            return FINISHED, ""
        return UNFINISHED, "the training is not finished; run the same command again to finish it"
    done = total = begun = sealed = 0
    for name in record["cells"]:
        rounds = record.get("rounds", {}).get(name, [name])
        cells_of = (_shards(folder / "cells" / part, files) for part in rounds)
        parts = [part for part in cells_of if part]
        begun += bool(rounds) and len(parts) == len(rounds)
        sealed += bool(rounds) and sum(part[2] for part in parts) == len(rounds)
        done += sum(part[0] for part in parts)
        total += sum(part[1] for part in parts)
    cells = len(record["cells"])
    if sealed < cells:
        later = (
            f", {cells - begun} of {number_of(cells, 'model')} × data not started"
            if begun < cells
            else ""
        )
        again = "run the same command again to finish it"
        return UNFINISHED, f"{done:,} of {number_of(total, 'shard')}{later}; {again}"
    if not is_protected(folder / "run.json"):
        return OLDER, "written by an earlier version, whose records have no checksum"
    return FINISHED, ""


def _shards(cell: Place, files: Files) -> tuple[int, int, bool] | None:
    """The numbers of written and of all shards of a cell, and whether it is sealed.

    None if it has not started. Raises `UsageError` if a record is damaged or a shard is missing.
    """
    names = files.names(cell)
    if not names:
        return None
    if "cell.json" not in names:
        raise UsageError(f"'{cell / 'cell.json'}' is missing; {CELL}")
    if "seal.json" in names:
        shards = read_record(cell / "seal.json", SEAL, ("shards",))["shards"]
        missing = [entry["file"] for entry in shards if entry["file"] not in names]
        if missing:
            raise UsageError(f"the shard '{cell / missing[0]}' is missing; {MEND}")
        return len(shards), len(shards), True
    identity = read_record(cell / "cell.json", CELL, ("rows", "shard_rows"))
    total = -(-int(identity["rows"]) // int(identity["shard_rows"]))
    return min(sum(name.endswith(".seal") for name in names), total), total, False


def _rows(path: Place) -> tuple[tuple[RunRow, ...], str]:
    """The stored numbers of a run, possibly none, and a line on their damage."""
    try:
        content = json.loads(path.read_bytes())
        return tuple(map(_row, content["results"])), ""
    except FileNotFoundError:
        return (), ""
    except MALFORMED:
        again = "`steadyeye report RUN --out RUN/results.json` writes it"
        return (), f"results.json is damaged; {again}"


def _row(content: Mapping[str, Any]) -> RunRow:
    numbers = (
        Number(
            str(name),
            float(number["value"]),
            _finite(number["low"]),
            _finite(number["high"]),
            int(number["n"]),
            str(number["unit"]),
        )
        for name, number in content["metrics"].items()
        if _finite(number["value"]) is not None
    )
    return RunRow(str(content["model"]), str(content["data"]), tuple(numbers))


def _finite(value: Any) -> float | None:
    """The number as a finite float, or None."""
    return None if value is None or not math.isfinite(value) else float(value)


def _line(error: BaseException) -> str:
    """An error as one line."""
    if isinstance(error, OSError):
        return f"'{error.filename}' cannot be read: {error.strerror}"
    if isinstance(error, UsageError):
        return " ".join(str(error).split())
    return f"run.json does not have the form of a run ({type(error).__name__}); {RUN}"


def read_last_time(folder: Place) -> float | None:
    """When a run last wrote to its log, seconds since 1970; None without a log."""
    try:
        with (folder / "log.jsonl").open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - TAIL, 0))
            return float(json.loads(file.read().splitlines()[-1])["time"])
    except (OSError, ValueError, LookupError, TypeError, UsageError):
        return None


def _date(folder: Place, names: frozenset[str]) -> float | None:
    """The time of the last line of a run's log, otherwise of its record; seconds since 1970.

    None if neither is known, for example in a store without a log.
    """
    last = read_last_time(folder)
    if last is not None:
        return last
    mark = next((name for name in MARKS if name in names), MARKS[0])
    try:
        return Path(folder / mark).stat().st_mtime if isinstance(folder, Path) else None
    except OSError:
        return None


def _of(path: Path) -> tuple[str, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return path.name, 0, -1
    return path.name, status.st_mtime_ns, status.st_size


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run or of mining, not one with runs below it."""
    return any((folder / name).is_file() for name in MARKS)
