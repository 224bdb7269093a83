"""Decodes and stores frames in a separate process, which may hang, crash or be killed."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeAlias

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError, describe_failure
from steadyeye.core.format import number_of
from steadyeye.core.spec import Spec
from steadyeye.core.stop_signals import STOPS
from steadyeye.core.storage.files import clear_folder, remove_temporaries
from steadyeye.core.types import Source
from steadyeye.data.video.pm_set_source import FrameSets, set_notes
from steadyeye.review.sampling.sampling import StoredFrame, store_frames

Begin: TypeAlias = Callable[[str, int], Callable[[int], None]]

SECONDS = 120.0  # for one frame: opening a video and the seek to its first frame included

ENDING = 10.0  # seconds that a process may take to end once it has closed its side


class DecoderEndedError(Exception):
    """The decoding process ended before it had sent everything; the text says how."""


@dataclass(frozen=True)
class Beginning:
    """How many frames a source has, and what must be known of it."""

    frames: int
    notes: Sequence[str]


def read_frames(
    specs: Sequence[Spec], out: Path, begin: Begin, notes: list[str], seconds: float = SECONDS
) -> Iterator[StoredFrame]:
    """The stored frames of the sources in `specs`, one source after the other.

    `begin`: called with the name and the number of frames of each; what it returns, with how many
    more are done. `notes`: is given what must be known of the sources. A process that decodes and
    is killed, or crashes, is begun once more. Raises `UsageError` where it ends again, where one
    frame takes longer than `seconds`, and whatever the source does.
    """
    for spec in specs:
        advance: Callable[[int], None] | None = None
        for message in _decode_again(spec, out, seconds):
            if isinstance(message, Beginning):
                advance = begin(Path(str(spec.kwargs.get("path", spec))).name, message.frames)
                notes += [note for note in message.notes if note not in notes]
                continue
            assert advance, "the number of frames comes before them"
            advance(1)
            yield message


def _decode_again(spec: Spec, out: Path, seconds: float) -> Iterator[Beginning | StoredFrame]:
    """The output of `_decode`, continued by a second process if the first ended; no repeats."""
    passed_on = 0
    for is_last in (False, True):
        try:
            for message in islice(_decode(spec, out, seconds), passed_on, None):
                passed_on += 1
                yield message
            return
        except DecoderEndedError as ended:
            if is_last:
                raise UsageError(
                    f"the process that decodes {spec} ended twice, {ended}, after "
                    f"{number_of(max(passed_on - 1, 0), 'frame')}; if memory ran out, free some, "
                    "otherwise leave the file out"
                ) from None


def _decode(spec: Spec, out: Path, seconds: float) -> Iterator[Beginning | StoredFrame]:
    """The beginning of a source, then each of its frames, from a process of its own.

    Raises `DecoderEndedError`, and `UsageError` as `read_frames`.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_frames, args=(spec, out, sender), daemon=True)
    with _blocked_stops():
        process.start()
    sender.close()
    try:
        yield from _receive(spec, receiver, seconds)
    except EOFError:
        process.join(ENDING)
        _kill(process)
        clear_folder(out, process.pid or "")
        code = process.exitcode or 0
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        raise DecoderEndedError(how) from None
    except BaseException:
        _kill(process)
        clear_folder(out, process.pid or "")
        raise
    _kill(process)


@contextmanager
def _blocked_stops() -> Iterator[None]:
    """Delays stop signals until the block ends; a process that starts in it ignores them.

    A signal of the terminal goes to all processes: the decoding process is ended by its parent.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _kill(process: BaseProcess) -> None:
    process.kill()
    process.join()


def _receive(spec: Spec, receiver: Connection, seconds: float) -> Iterator[Beginning | StoredFrame]:
    """The next message of the process. Raises `EOFError` if it ended, also within a message."""
    while True:
        if not receiver.poll(seconds):
            raise UsageError(f"{spec} gave no frame for {seconds:.0f} s; leave the file out")
        try:
            message = receiver.recv()
        except OSError as error:
            raise EOFError from error
        if message is None:
            return
        if isinstance(message, str):
            raise UsageError(message)
        yield message


def _send_frames(spec: Spec, out: Path, sender: Connection) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(BrokenPipeError):
        _send_all(spec, out, sender)


def _end_with_parent() -> None:
    """Ends this process, also within a frame, once its parent is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "it is begun by another process"
    parent.join()
    remove_temporaries()
    os._exit(1)


def _list_notes(source: Source) -> Sequence[str]:
    """What must be known of a source, but for what is counted again of the reviewed set.

    Where a scene cut lies is seen in the frames.
    """
    if not isinstance(source, FrameSets):
        return source.notes
    left_out = {*set_notes(source.members), *source.cut_notes}
    return [note for note in source.notes if note not in left_out]


def _send_all(spec: Spec, out: Path, sender: Connection) -> None:
    try:
        source = plugins.build("sources", spec)
        sender.send(Beginning(len(source), _list_notes(source)))
        for frame in store_frames(source, out):
            sender.send(frame)
    except UsageError as error:
        sender.send(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        # as a full disk where the folder of a picture is made
        sender.send(describe_failure(error))
    else:
        sender.send(None)
