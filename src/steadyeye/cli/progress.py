"""Progress on the terminal."""

from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

progress_console = Console(stderr=True, highlight=False)


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
            console=progress_console,
            disable=quiet,
        )

    def __enter__(self) -> "Bars":
        self.bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.bars.stop()
        if kind is KeyboardInterrupt:
            # Typer turns the interrupt into exit code 130 without a word
            progress_console.print("steadyeye: stopped; run the same command again to go on")

    def begin(self, name: str, rows: int | None) -> Callable[[int], None]:
        """Begins a bar; what is returned is called with how many more are done.

        `rows`: None where nobody knows how many there are.
        """
        bar = self.bars.add_task(name, total=rows, rate="")

        def advance(done: int) -> None:
            self.bars.advance(bar, done)
            speed = self.bars.tasks[bar].speed
            self.bars.update(bar, rate=f"{speed:.0f} images/s" if speed else "")

        return advance

    def resumed(self, name: str, finished: int, shards: int) -> None:
        """Says what an earlier run had finished."""
        if not self.quiet:
            progress_console.print(f"{name}: {finished} of {shards} shards were already done")
