"""Ctrl-C, SIGTERM and SIGHUP: the work stops, finished parts are kept, and one line says so.

The first signal raises `KeyboardInterrupt`: threads end at their next batch, a training after its
step. A second signal of any kind ends the process immediately, and a file that is being written is
lost.
"""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from steadyeye.cli.terminal import progress_console, say
from steadyeye.core.stop_signals import STOPS, leave_closed_terminal
from steadyeye.core.storage.files import remove_temporaries

INTERRUPTED = 130
STOPPED = "stopped; run the same command again to go on"
REPEAT = 0.05
"""Seconds after which a signal that a finalizer has swallowed is repeated."""

Say = Callable[[str], None]


class Interrupts:
    """The received signals. `say`: prints the last line; a command may replace it."""

    number = 0
    has_ended = False
    say: Say
    _numbers: Sequence[int] = ()
    _show_unraisable: Callable[["sys.UnraisableHookArgs"], object]

    def begin(self) -> None:
        """Starts to listen, and forgets earlier signals."""
        self.number = 0
        self.has_ended = False
        self.say = _say_line
        # registered first, it is the last that runs
        atexit.register(self._leave)
        if sys.unraisablehook != self._repeat_swallowed:
            self._show_unraisable = sys.unraisablehook
            sys.unraisablehook = self._repeat_swallowed
        # one that is ignored (`nohup`, a shell's background) stays so
        self._numbers = [n for n in STOPS if signal.getsignal(n) != signal.SIG_IGN]
        self._listen()

    def _listen(self) -> None:
        for number in self._numbers:
            signal.signal(number, self._handle)

    @property
    def exit_code(self) -> int:
        """As in shells: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP; 0 without one."""
        return 128 + self.number if self.number else 0

    def end(self) -> int:
        """Prints that the work ended; returns the exit code.

        A later signal ends the process immediately.
        """
        _ignore_stops()  # while the line is written
        self.say(STOPPED)
        self.has_ended = True
        self._listen()
        return self.exit_code

    def _leave(self) -> None:
        """Keeps the exit code, since Python ends itself by SIGINT if one came within an `exec`."""
        _ignore_stops()
        if self.has_ended:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(self.exit_code or INTERRUPTED)

    def _repeat_swallowed(self, unraisable: "sys.UnraisableHookArgs") -> None:
        """Repeats the first signal if it came within a finalizer, in which exceptions are lost."""
        if unraisable.exc_type is not KeyboardInterrupt or not self.number or self.has_ended:
            self._show_unraisable(unraisable)
            return
        number, self.number = self.number, 0
        main = threading.main_thread().ident
        # later, because the finalizer would swallow it again
        timer = threading.Timer(REPEAT, signal.pthread_kill, (main, number))
        timer.daemon = True  # the work may end before
        timer.start()

    def _handle(self, number: int, _: object) -> None:
        leave_closed_terminal()
        if not self.number:
            self.number = number
            raise KeyboardInterrupt
        _ignore_stops()
        # threads may take long to end: nothing is waited for, and what they write does not count
        remove_temporaries()
        if not self.has_ended:
            with suppress(RuntimeError):  # the first may have come in the middle of a line
                self.say(STOPPED)
        os._exit(self.exit_code)


def _ignore_stops() -> None:
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


def _say_line(text: str) -> None:
    say(f"steadyeye: {text}", to=progress_console)


interrupts = Interrupts()
"""The interrupts of this process; `begin` starts to listen."""
