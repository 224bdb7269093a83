"""Progress on the terminal: bars for people, lines of JSON for programs."""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from steadyeye.core.errors import unknown

progress_console = Console(stderr=True, highlight=False, soft_wrap=True)

STOPPED = "stopped; run the same command again to go on"
EVERY = 1.0  # seconds between two lines of a cell


class Watching(Protocol):
    """A watcher of a run that is there for a `with` block."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def begin(self, name: str, rows: int | None, done: int = 0) -> Callable[[int], None]:
        """As of `evaluation.run.Watcher` and `training.loop.Watcher`.

        `rows`: None where nobody knows how many there are.
        """
        ...

    def learned(self, name: str, loss: float) -> None:
        """As of `training.loop.Watcher`."""
        ...

    def resumed(self, name: str, finished: int, shards: int) -> None:
        """As of `evaluation.run.Watcher`."""
        ...

    def counted(self, name: str, found: Mapping[str, float]) -> None:
        """As of `evaluation.run.Watcher`."""
        ...

    def say(self, line: str) -> None:
        """As of `evaluation.run.Watcher`."""
        ...


def watching(shown: str) -> Watching:
    """What shows progress as `bar`, `json` or `none`. Raises `UsageError` for another word."""
    if shown not in ("bar", "json", "none"):
        raise unknown("progress", shown, ("bar", "json", "none"))
    return Lines() if shown == "json" else Bars(shown == "none")


class Bars:
    """A Rich progress bar a cell; silent when quiet."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[counts]}"),
            console=progress_console,
            disable=quiet,
        )
        self._of: dict[str, object] = {}

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.bars.stop()
        if kind is KeyboardInterrupt:
            # Typer turns the interrupt into exit code 130 without a word
            progress_console.print(f"steadyeye: {STOPPED}")

    def begin(self, name: str, rows: int | None, done: int = 0) -> Callable[[int], None]:
        """Begins a bar; what is returned is called with how many more are done.

        `rows`: None where nobody knows how many there are. `done`: how many were before.
        """
        bar = self._of[name] = self.bars.add_task(
            name, total=rows, completed=done, rate="", counts=""
        )

        def advance(done: int) -> None:
            self.bars.advance(bar, done)
            speed = self.bars.tasks[bar].speed
            self.bars.update(bar, rate=f"{speed:.0f} images/s" if speed else "")

        return advance

    def resumed(self, name: str, finished: int, shards: int) -> None:
        """Says what an earlier run had finished."""
        self.say(f"{name}: {finished} of {shards} shards were already done")

    def counted(self, name: str, found: Mapping[str, float]) -> None:
        """Shows how many samples came from the cache and how many failed."""
        hits, errors = int(found["hits"]), int(found["errors"])
        told = [f"{hits:,} from the cache"] if hits else []
        told += [f"{errors:,} errors"] if errors else []
        self.bars.update(self._of[name], counts=", ".join(told))  # type: ignore[arg-type]

    def learned(self, name: str, loss: float) -> None:
        """Shows the loss of a training."""
        self.bars.update(self._of[name], counts=f"loss {loss:.4f}")  # type: ignore[arg-type]

    def say(self, line: str) -> None:
        """Prints a line above the bars."""
        if not self.quiet:
            progress_console.print(line, markup=False)


class Lines:
    """A JSON object a line on stderr; docs/reference/runs.md names the keys."""

    def __init__(self) -> None:
        self._cells: dict[str, _Cell] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for cell in self._cells.values():
            # where nobody knew how many there are, the end is known only now
            if cell.rows is None and cell.done:
                self._progress(cell)
        if kind is KeyboardInterrupt:
            self._write(event="stopped", message=STOPPED)

    def begin(self, name: str, rows: int | None, done: int = 0) -> Callable[[int], None]:
        """Tells that a cell begins, and then at most every second how far it is."""
        now = time.monotonic()
        cell = _Cell(name, rows, began=now, told=now, done=done, found=done or None)
        self._cells[name] = cell
        self._write(event="begin", cell=name, rows=rows)

        def advance(done: int) -> None:
            with self._lock:
                if cell.found is None:
                    cell.found = done  # what an earlier run had done says nothing of the speed
                cell.done += done
                now = time.monotonic()
                if now - cell.told >= EVERY or cell.done == rows:
                    cell.told = now
                    self._progress(cell)

        return advance

    def resumed(self, name: str, finished: int, shards: int) -> None:
        """Tells what an earlier run had finished."""
        self._write(event="resumed", cell=name, finished=finished, shards=shards)

    def counted(self, name: str, found: Mapping[str, float]) -> None:
        """Takes in how many samples came from the cache and how many failed."""
        with self._lock:
            cell = self._cells[name]
            cell.hits, cell.errors = int(found["hits"]), int(found["errors"])

    def learned(self, name: str, loss: float) -> None:
        """Takes in the loss of a training."""
        with self._lock:
            self._cells[name].loss = loss

    def say(self, line: str) -> None:
        """Tells something in words."""
        self._write(event="message", message=line)

    def _progress(self, cell: "_Cell") -> None:
        rate = (cell.done - (cell.found or 0)) / max(time.monotonic() - cell.began, 1e-3)
        left = None if cell.rows is None or rate <= 0 else (cell.rows - cell.done) / rate
        counts: dict[str, float] = {"hits": cell.hits, "errors": cell.errors}
        self._write(
            event="progress",
            cell=cell.name,
            rows=cell.rows,
            done=cell.done,
            **(counts if cell.loss is None else {"loss": round(cell.loss, 5)}),
            images_per_second=round(rate, 1),
            seconds_left=None if left is None else round(left, 1),
        )

    def _write(self, **line: object) -> None:
        sys.stderr.write(json.dumps(line, ensure_ascii=False) + "\n")
        sys.stderr.flush()


@dataclass(eq=False)
class _Cell:
    """How far a cell is. `found`: what was done before; `began`, `told`: monotonic seconds."""

    name: str
    rows: int | None
    began: float
    told: float
    done: int = 0
    found: int | None = None
    hits: int = 0
    errors: int = 0
    loss: float | None = None
