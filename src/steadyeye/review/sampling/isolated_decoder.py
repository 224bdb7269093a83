"""Sampling in a process of its own, which is ended where a file keeps the decoder too long."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.review.sampling.sampling import Stored, store

Begin: TypeAlias = Callable[[str, int], Callable[[int], None]]

SECONDS = 120.0  # for one frame: opening a video and the seek to its first frame included


def read_frames(
    specs: Sequence[Spec], out: Path, begin: Begin, seconds: float = SECONDS
) -> Iterator[Stored]:
    """The stored frames of the sources that `specs` name, one source after the other.

    `begin`: called with the name and the number of frames of each; what it returns, with how many
    more are done.
    Raises `UsageError` where one frame takes longer than `seconds`, and whatever the source does.
    """
    context = multiprocessing.get_context("spawn")
    for spec in specs:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_store, args=(spec, out, theirs), daemon=True)
        process.start()
        theirs.close()
        try:
            yield from _receive_frames(spec, ours, begin, seconds)
        finally:
            process.kill()
            process.join()


def _receive_frames(spec: Spec, ours: Connection, begin: Begin, seconds: float) -> Iterator[Stored]:
    advance: Callable[[int], None] | None = None
    while True:
        if not ours.poll(seconds):
            raise UsageError(f"{spec} gave no frame for {seconds:.0f} s; leave the file out")
        try:
            message = ours.recv()
        except EOFError:
            raise UsageError(f"the decoder of {spec} stopped; leave the file out") from None
        if message is None:
            return
        if isinstance(message, str):
            raise UsageError(message)
        if advance is None:
            advance = begin(Path(str(spec.kwargs.get("path", spec))).name, message)
            continue
        advance(1)
        yield message


def _store(spec: Spec, out: Path, theirs: Connection) -> None:
    try:
        source = plugins.build("sources", spec)
        theirs.send(len(source))
        for each in store(source, out):
            theirs.send(each)
    except UsageError as error:
        theirs.send(str(error))
    else:
        theirs.send(None)
