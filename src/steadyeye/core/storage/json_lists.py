"""Long lists of JSON, a piece at a time, so that few objects of Python live at once."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

PIECE = 20_000
"""Entries of a list that are objects of Python at a time."""

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
    return (entries[start : start + PIECE] for start in range(0, len(entries), PIECE))
