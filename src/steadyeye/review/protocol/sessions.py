"""Sessions of browsers in which a private link was opened."""

import secrets
import time
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from steadyeye.review.database import reviewers, sessions
from steadyeye.review.protocol.reviewers import REVIEWER_COLUMNS, Reviewer, hash_token

DAY = 86_400.0
TOUCH = 300.0  # seconds: a session is written at most this often, as each write waits for the disk


@dataclass(frozen=True)
class Lifetime:
    """The lifetime of a session in seconds. `idle`: without a request. `whole`: in total."""

    idle: float = 3 * DAY
    whole: float = 30 * DAY


@dataclass(frozen=True)
class Session:
    """A session that has not expired.

    `stale`: whether the time of its last request must be updated.
    """

    reviewer: Reviewer
    stale: bool


def open_session(connection: Connection, reviewer: Reviewer, lifetime: Lifetime) -> str:
    """The id of a new session, 256 random bits of which only a hash is kept.

    All expired sessions are deleted.
    """
    now = time.time()
    connection.execute(delete(sessions).where(~_is_alive(lifetime, now)))
    word = secrets.token_urlsafe(32)
    row = {"hash": hash_token(word), "reviewer": reviewer.id, "made_at": now, "seen_at": now}
    connection.execute(insert(sessions).values(row))
    return word


def find_session(connection: Connection, word: str, lifetime: Lifetime) -> Session | None:
    """The session with an id; None where there is none, or it has expired."""
    now = time.time()
    query = (
        select(*REVIEWER_COLUMNS, sessions.c.seen_at)
        .join(sessions, sessions.c.reviewer == reviewers.c.id)
        .where(sessions.c.hash == hash_token(word), _is_alive(lifetime, now))
    )
    row = connection.execute(query).first()
    if row is None:
        return None
    *person, seen_at = row
    return Session(Reviewer(*person), now - seen_at > min(TOUCH, lifetime.idle / 4))


def touch_session(connection: Connection, word: str) -> None:
    """Stores the current time as that of the last request."""
    change = update(sessions).where(sessions.c.hash == hash_token(word))
    connection.execute(change.values(seen_at=time.time()))


def end_session(connection: Connection, word: str) -> None:
    """Ends a session; an unknown id is no error."""
    connection.execute(delete(sessions).where(sessions.c.hash == hash_token(word)))


def _is_alive(lifetime: Lifetime, now: float) -> ColumnElement[bool]:
    return (sessions.c.seen_at > now - lifetime.idle) & (sessions.c.made_at > now - lifetime.whole)
