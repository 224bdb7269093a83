"""Long lists of JSON, a piece at a time, so that few objects of Python live at once."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from steadyeye.core.seeds import BlockFingerprint

PIECE = 20_000
"""Entries of a list that are objects of Python at a time."""

BLOCK = 1 << 20
"""Bytes of a file that are read at a time."""

BETWEEN = re.compile(rb".*\}(?=[ \t\r\n]*+,[ \t\r\n]*+\{)", re.DOTALL)
"""Up to the end of the last object that another one follows."""

LONGEST = 4  # blocks without an end of an object

MARK = "\ufeff".encode()

Entry = TypeVar("Entry")


def decode_in_pieces(raw: Sequence[msgspec.Raw], kind: type[Entry]) -> Iterator[Sequence[Entry]]:
    """The entries of a list in their order, as structures of a kind.

    Raises `msgspec.MsgspecError` where one of them is none.
    """
    decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
    for piece in split_pieces(raw):
        yield decoder.decode(b"[" + b",".join(piece) + b"]")


def split_pieces(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """A sequence in pieces of `PIECE`."""
    return (entries[place] for place in list_pieces(len(entries)))


def list_pieces(length: int) -> Iterator[slice]:
    """The pieces of `PIECE` of so many entries."""
    return (slice(start, start + PIECE) for start in range(0, length, PIECE))


class ListFile:
    """A file of this machine that holds one JSON list of objects, decoded as it is read.

    `fingerprint`: that of its bytes, once all of them were read; see `seeds.fingerprint`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._length = path.stat().st_size
        self.fingerprint = BlockFingerprint(self._length)

    def decode(self, kind: type[Entry]) -> Iterator[Sequence[Entry]]:
        """The entries in their order, as structures of a kind.

        Raises `msgspec.MsgspecError` or `ValueError` for a file that must be read as a whole: one
        that is no list of such objects, has bytes that `text_files` takes out or refuses, an object
        of several blocks, or a list of objects within an object.
        """
        decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
        for piece in self._split():
            piece.decode()  # what is not decoded is text all the same
            if b"\0" in piece or MARK in piece:
                raise ValueError("a zero byte or a mark within the list")
            # JSON is read from the left: what is a list once it is closed ends between two entries
            entries = decoder.decode(piece)
            if entries:
                yield entries

    def _split(self) -> Iterator[bytes]:
        """The list cut between objects, each part closed with brackets of its own."""
        left, total = b"", 0
        with self._path.open("rb") as file:
            while block := file.read(BLOCK):
                self.fingerprint.add(block)
                total += len(block)
                left += block
                end = BETWEEN.match(left)
                if end:
                    yield left[: end.end()] + b"]"
                    left = b"[" + left[left.index(b",", end.end()) + 1 :]
                elif len(left) > LONGEST * BLOCK:
                    raise ValueError("an object of several blocks")
        if total != self._length:
            raise ValueError("the file was changed while it was read")
        yield left
