"""Reviewers and the private links by which they are known."""

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from steadyeye.core.errors import UsageError
from steadyeye.review.database import items, reviewers

BULK = "bulk, after an audit"
"""The name under which pairs are accepted in bulk; it has no link and is nobody."""


@dataclass(frozen=True)
class Reviewer:
    """Someone who reviews; `paused`: why nothing more is shown to them, or empty."""

    id: int
    name: str
    admin: bool
    paused: str


def add_reviewer(
    connection: Connection, name: str, *, admin: bool = False, joint: Sequence[str] = ()
) -> str:
    """Adds a reviewer and returns the token of their link, which is kept nowhere.

    `joint`: the stages in which everybody votes; what is open there waits for the new one too.
    Raises `UsageError` for a name that is empty, too long or taken.
    """
    name = name.strip()
    if not 1 <= len(name) <= 80:
        raise UsageError(f"a reviewer's name has 1 to 80 characters, not {len(name)}")
    token = secrets.token_urlsafe(32)
    row = {
        "name": name,
        "token_hash": hash_token(token),
        "admin": admin,
        "paused": "",
        "made_at": time.time(),
    }
    taken = select(reviewers.c.id).where(reviewers.c.name == name)
    if connection.execute(taken).first():
        raise UsageError(f"there is a reviewer '{name}' already; choose another name")
    try:
        connection.execute(insert(reviewers).values(row))
    except IntegrityError:
        raise UsageError(f"there is a reviewer '{name}' already; choose another name") from None
    if not admin:
        _require_all(connection, joint)
    return token


def renew_token(connection: Connection, name: str) -> str:
    """A new token for a reviewer whose link was lost; the old link opens nothing any more."""
    token = secrets.token_urlsafe(32)
    change = update(reviewers).where(reviewers.c.name == name)
    if not connection.execute(change.values(token_hash=hash_token(token))).rowcount:
        raise UsageError(f"no reviewer named '{name}'; add them first")
    return token


_COLUMNS = (reviewers.c.id, reviewers.c.name, reviewers.c.admin, reviewers.c.paused)


def find_by_token(connection: Connection, token: str) -> Reviewer | None:
    """The reviewer whose link it is, or None.

    What is compared is the hash of a random 256-bit token.
    """
    query = select(*_COLUMNS).where(reviewers.c.token_hash == hash_token(token))
    row = connection.execute(query).first()
    return Reviewer(*row) if row else None


def list_reviewers(connection: Connection) -> Sequence[Reviewer]:
    """All reviewers, in the order in which they came."""
    query = select(*_COLUMNS).where(reviewers.c.name != BULK).order_by(reviewers.c.id)
    return [Reviewer(*row) for row in connection.execute(query)]


def find_bulk_reviewer(connection: Connection) -> int:
    """The id under which pairs are accepted in bulk."""
    query = select(reviewers.c.id).where(reviewers.c.name == BULK)
    if connection.execute(query).scalar() is None:
        add_reviewer(connection, BULK, admin=True)  # the token of its link is thrown away
    return int(connection.execute(query).scalar_one())


def count_reviewers(connection: Connection) -> int:
    """How many review; the admin does not."""
    query = select(func.count()).select_from(reviewers).where(~reviewers.c.admin)
    return int(connection.execute(query).scalar_one())


def pause_reviewer(connection: Connection, reviewer: int, why: str) -> None:
    """Pauses a reviewer, or with an empty `why` lets them go on."""
    connection.execute(update(reviewers).where(reviewers.c.id == reviewer).values(paused=why))


def lock_reviewer(connection: Connection, reviewer: Reviewer) -> None:
    """Makes two requests of one reviewer wait for each other; SQLite has one writer anyway."""
    if connection.dialect.name != "sqlite":
        mine = select(reviewers.c.id).where(reviewers.c.id == reviewer.id)
        connection.execute(mine.with_for_update())


def hash_token(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def _require_all(connection: Connection, joint: Sequence[str]) -> None:
    still_open = (items.c.state == "open") & items.c.gold.is_(None) & items.c.stage.in_(joint)
    connection.execute(update(items).where(still_open).values(needed=count_reviewers(connection)))
