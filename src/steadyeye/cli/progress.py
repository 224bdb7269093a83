"""Progress on the terminal: bars for people, lines of JSON for programs."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from rich.cells import cell_len
from rich.live import Live
from rich.text import Text

from steadyeye.cli.interrupts import interrupts
from steadyeye.cli.terminal import progress_console, say, width
from steadyeye.core.errors import unknown
from steadyeye.core.format import number_of

EVERY = 1.0  # seconds between two lines of a cell
LONGEST, SHORTEST = 40, 10  # columns of a bar


def watching(form: str) -> "Bars | Lines":
    """The watcher that shows progress as `bar`, `json` or `none`, to be used in a `with` block.

    A `Watcher` of `runner.run` and of `training.loop`. Raises `UsageError` for other words.
    """
    if form not in ("bar", "json", "none"):
        raise unknown("progress", form, ("bar", "json", "none"))
    return Lines() if form == "json" else Bars(form == "none")


class _CellWatcher:
    """The state of each cell, as reported by a run or a training."""

    def __init__(self) -> None:
        self._cells: dict[str, _Cell] = {}
        self._lock = threading.RLock()

    def report_counts(self, name: str, counts: Mapping[str, float]) -> None:
        """Takes in how many samples came from the cache and how many failed."""
        with self._lock:
            self._cells[name].count(counts)

    def show_loss(self, name: str, loss: float) -> None:
        """Records the loss of a training."""
        with self._lock:
            self._cells[name].loss = loss


class Bars(_CellWatcher):
    """One bar per cell in progress, and one line per finished cell; nothing when quiet.

    If stderr is no terminal there are only the lines.
    """

    def __init__(self, quiet: bool) -> None:
        super().__init__()
        self.quiet = quiet
        self._live = Live(
            get_renderable=self._bars,
            console=progress_console,
            refresh_per_second=8,
            transient=True,
        )

    def __enter__(self) -> Self:
        if not self.quiet and width(progress_console) is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._settle(all_of_them=True, stopped=kind is not None)
        self._live.stop()

    def begin(self, name: str, rows: int | None, done: int = 0) -> Callable[[int], None]:
        """Begins a bar; the returned function is called with the number of newly finished rows.

        `rows`: None if their number is unknown. `done`: the number finished before.
        """
        self._settle()
        cell = _Cell(name, rows, began=time.monotonic(), done=done, earlier=done or None)
        with self._lock:
            self._cells[name] = cell

        def advance(done: int) -> None:
            with self._lock:
                cell.advance(done)

        return advance

    def report_resumed(self, name: str, finished: int, shards: int) -> None:
        """Prints what an earlier run had finished."""
        self.say(f"{name}: {finished} of {number_of(shards, 'shard')} already done")

    def say(self, line: str) -> None:
        """Prints a line above the bars."""
        self._settle()
        if not self.quiet:
            say(line, to=progress_console)

    def _settle(self, all_of_them: bool = False, stopped: bool = False) -> None:
        """Replaces the bars of finished cells, or of all, by lines above the others.

        `stopped`: by an error or an interrupt; then a cell without any finished row gets no line.
        """
        with self._lock:
            bars = [cell for cell in self._cells.values() if not cell.settled]
            over = [cell for cell in bars if all_of_them or cell.done == cell.rows]
            for cell in over:
                cell.settled = True
        if over and self._live.is_started:
            self._live.refresh()  # what is printed now would else be followed by their last bars
        for cell in over:
            if not self.quiet and (cell.done or (cell.rows and not stopped)):
                say(f"{cell.name}: {', '.join(cell.facts())}", to=progress_console)

    def _bars(self) -> Text:
        with self._lock:
            bars = [cell for cell in self._cells.values() if not cell.settled]
            # a full line would wrap on terminals that go on below at once
            columns = progress_console.width - 1
            lines = [line for cell in bars for line in bar(cell, columns)]
        return Text("\n".join(lines), no_wrap=True, overflow="crop")


def bar(cell: "_Cell", columns: int) -> list[str]:
    """The progress of a cell, as lines of a limited number of columns; names are not broken.

    If the space is short, the bar is dropped first, then the name gets its own line.
    """
    name, facts = cell.name, "  ".join(cell.facts())
    long = min(columns - cell_len(facts) - cell_len(name) - 4, LONGEST)
    if long >= SHORTEST:
        return [f"{name}  {_draw_bar(cell, long)}  {facts}"]
    long = min(columns - cell_len(facts) - 4, LONGEST)
    prefix = f"{_draw_bar(cell, long)}  " if long >= SHORTEST else ""
    return [name, f"  {prefix}{facts}"]


def _draw_bar(cell: "_Cell", long: int) -> str:
    full = round(long * cell.done / cell.rows) if cell.rows else 0
    return "━" * full + "─" * (long - full)


class Lines(_CellWatcher):
    """One JSON object per line on stderr; docs/reference/runs.md names the keys."""

    def __enter__(self) -> Self:
        interrupts.say = lambda text: self._write(event="stopped", message=text)
        return self

    def __exit__(self, *_: object) -> None:
        for cell in self._cells.values():
            # where nobody knew how many there are, the end is known only now
            if cell.rows is None and cell.done:
                self._progress(cell)

    def begin(self, name: str, rows: int | None, done: int = 0) -> Callable[[int], None]:
        """Writes that a cell begins, and then its progress at most once a second."""
        now = time.monotonic()
        cell = _Cell(name, rows, began=now, reported_at=now, done=done, earlier=done or None)
        self._cells[name] = cell
        self._write(event="begin", cell=name, rows=rows)

        def advance(done: int) -> None:
            with self._lock:
                cell.advance(done)
                now = time.monotonic()
                if now - cell.reported_at >= EVERY or cell.done == rows:
                    cell.reported_at = now
                    self._progress(cell)

        return advance

    def report_resumed(self, name: str, finished: int, shards: int) -> None:
        """Writes what an earlier run had finished."""
        self._write(event="resumed", cell=name, finished=finished, shards=shards)

    def say(self, line: str) -> None:
        """Writes a message."""
        self._write(event="message", message=line)

    def _progress(self, cell: "_Cell") -> None:
        counts: dict[str, float] = {"hits": cell.hits, "errors": cell.errors}
        left = cell.seconds_left
        self._write(
            event="progress",
            cell=cell.name,
            rows=cell.rows,
            done=cell.done,
            **(counts if cell.loss is None else {"loss": round(cell.loss, 5)}),
            images_per_second=round(cell.rate, 1),
            seconds_left=None if left is None else round(left, 1),
        )

    def _write(self, **line: object) -> None:
        sys.stderr.write(json.dumps(line, ensure_ascii=False) + "\n")
        sys.stderr.flush()


@dataclass(eq=False)
class _Cell:
    """The progress of a cell.

    `earlier`: rows finished by an earlier run. `began`, `reported_at`, `latest`: monotonic seconds
    of its begin, its last line and its last image. `settled`: whether its last line was written.
    """

    name: str
    rows: int | None
    began: float
    reported_at: float = 0.0
    done: int = 0
    earlier: int | None = None
    hits: int = 0
    errors: int = 0
    loss: float | None = None
    latest: float = 0.0
    settled: bool = False

    def advance(self, done: int) -> None:
        """Adds a number of finished rows."""
        if self.earlier is None:
            self.earlier = done  # what an earlier run had done says nothing of the speed
        self.done += done
        self.latest = time.monotonic()

    def count(self, counts: Mapping[str, float]) -> None:
        """Takes in how many samples came from the cache and how many failed."""
        self.hits, self.errors = int(counts["hits"]), int(counts["errors"])

    @property
    def rate(self) -> float:
        """Images per second, without those of an earlier run."""
        over = self.settled or self.done == self.rows
        seconds = (self.latest if over else time.monotonic()) - self.began
        return (self.done - (self.earlier or 0)) / max(seconds, 1e-3)

    @property
    def seconds_left(self) -> float | None:
        """None if their number is unknown, or nothing is finished yet."""
        return None if self.rows is None or self.rate <= 0 else (self.rows - self.done) / self.rate

    def facts(self) -> Iterator[str]:
        """The progress as a list of short facts."""
        yield f"{self.done:,}" if self.rows is None else f"{self.done:,}/{self.rows:,}"
        if self.rate >= 0.05:
            yield f"{self.rate:,.0f} images/s" if self.rate >= 10 else f"{self.rate:.1f} images/s"
        left = self.seconds_left
        if left:
            yield f"{timedelta(seconds=round(left))} left"
        if self.hits:
            yield f"{self.hits:,} from the cache"
        if self.errors:
            yield number_of(self.errors, "error")
        if self.loss is not None:
            yield f"loss {self.loss:.4f}"
