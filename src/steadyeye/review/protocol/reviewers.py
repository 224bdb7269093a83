"""Reviewers, the private links by which they are known, and the sessions of their browsers."""

import base64
import hashlib
import hmac
import os
import secrets
import tempfile
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from steadyeye.core.errors import UsageError
from steadyeye.review.database import assignments, items, reviewers, sessions

ADMIN = "admin"
BULK = "bulk, after an audit"
"""The reviewer name for bulk acceptance; it has no link and is no person."""
MOST_LETTERS = 80


@dataclass(frozen=True)
class Reviewer:
    """Someone who reviews; `paused`: why nothing more is shown to them, or empty."""

    id: int
    name: str
    admin: bool
    paused: str


REVIEWER_COLUMNS = (reviewers.c.id, reviewers.c.name, reviewers.c.admin, reviewers.c.paused)
"""The columns of a `Reviewer`."""

_EVERY_REVIEWER = select(*REVIEWER_COLUMNS).where(reviewers.c.name != BULK).order_by(reviewers.c.id)
# not for their row's key, which every item that they must not answer refers to
_LOCK_REVIEWER = (
    select(reviewers.c.id)
    .where(reviewers.c.id == bindparam("reviewer"))
    .with_for_update(key_share=True)
)
_LOCK_UNIT = select(
    func.pg_advisory_xact_lock(
        func.hashtext(select(items.c.unit).where(items.c.id == bindparam("item")).scalar_subquery())
    )
)


def add_reviewer(
    connection: Connection,
    name: str,
    *,
    admin: bool = False,
    joint: Sequence[str] = (),
    key: bytes | None = None,
) -> str:
    """Adds a reviewer and returns the token of their link; only its hash is stored.

    `joint`: the stages in which everybody votes; unfinished items there wait for the new reviewer
    too. `key`: that of the set's links; None: the link cannot be shown again. Raises `UsageError`
    for a name that is empty, too long, reserved, has invisible characters, or looks like another
    name.
    """
    name = clean_name(name)
    if not admin and _fold_name(name) in map(_fold_name, (ADMIN, BULK)):
        raise UsageError(f"the name '{name}' is reserved; choose another name")
    for other in connection.execute(select(reviewers.c.name)).scalars():
        if other == name:
            raise _name_taken_error(name)
        if _fold_name(other) == _fold_name(name):
            raise UsageError(f"'{name}' looks like the reviewer '{other}'; choose another name")
    token, link = _make_link(key)
    row = {"name": name, **link, "admin": admin, "paused": "", "made_at": time.time()}
    try:
        connection.execute(insert(reviewers).values(row))
    except IntegrityError:
        raise _name_taken_error(name) from None
    if not admin:
        require_present(connection, joint)
    return token


def clean_name(name: str) -> str:
    """A reviewer's name as it is stored: blanks made one, letters composed (Unicode's NFC).

    Raises `UsageError` where it has not 1 to 80 characters, or some that are not seen.
    """
    name = unicodedata.normalize("NFC", " ".join(filter(None, name.split(" "))))
    if not 1 <= len(name) <= MOST_LETTERS:
        raise UsageError(f"a reviewer's name has 1 to {MOST_LETTERS} characters, not {len(name)}")
    for letter in name:
        # control, format, surrogate, private, unassigned; separators other than the blank
        if unicodedata.category(letter)[0] == "C" or (letter.isspace() and letter != " "):
            raise UsageError(
                f"a reviewer's name cannot have the character U+{ord(letter):04X}, which is "
                "invisible; leave it out"
            )
    return name


def _fold_name(name: str) -> str:
    """The form in which similar names are equal: Unicode's compatibility form, without case."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _name_taken_error(name: str) -> UsageError:
    return UsageError(f"there is a reviewer '{name}' already; choose another name")


def renew_token(connection: Connection, name: str, key: bytes | None = None) -> str:
    """A new token for a reviewer; the old link and their sessions become invalid."""
    token, link = _make_link(key)
    _change_link(connection, name, link)
    return token


def revoke_link(connection: Connection, name: str) -> None:
    """Ends a reviewer's sessions and their link, until they are given a new one."""
    _change_link(connection, name, {"link": None, "token_hash": None})


def find_token(connection: Connection, name: str, key: bytes) -> str | None:
    """The token of a reviewer's link; None where it was revoked or made with another key."""
    query = select(reviewers.c.link, reviewers.c.token_hash).where(reviewers.c.name == name)
    row = connection.execute(query).first()
    token = make_token(key, row.link) if row and row.link else None
    return token if token and row and hash_token(token) == row.token_hash else None


def _make_link(key: bytes | None) -> tuple[str, Mapping[str, str]]:
    """A new token, and the values to store."""
    # it makes the link differ from the one before, and is not secret
    nonce = secrets.token_hex(16)
    token = make_token(key or secrets.token_bytes(32), nonce)
    return token, {"link": nonce, "token_hash": hash_token(token)}


def _change_link(connection: Connection, name: str, link: Mapping[str, str | None]) -> None:
    """Stores a reviewer's new link, and ends the sessions of the old one."""
    if not connection.execute(
        update(reviewers).where(reviewers.c.name == name, reviewers.c.name != BULK).values(**link)
    ).rowcount:
        raise UsageError(f"no reviewer named '{name}'; --reviewer adds one")
    own = select(reviewers.c.id).where(reviewers.c.name == name).scalar_subquery()
    connection.execute(delete(sessions).where(sessions.c.reviewer == own))


def find_by_token(connection: Connection, token: str) -> Reviewer | None:
    """The reviewer whose link it is, or None.

    The hashes of 256-bit tokens are compared.
    """
    query = select(*REVIEWER_COLUMNS).where(reviewers.c.token_hash == hash_token(token))
    row = connection.execute(query).first()
    return Reviewer(*row) if row else None


def list_reviewers(connection: Connection) -> Sequence[Reviewer]:
    """All reviewers, in the order in which they came."""
    return [Reviewer(*row) for row in connection.execute(_EVERY_REVIEWER)]


def find_bulk_reviewer(connection: Connection) -> int:
    """The id under which pairs are accepted in bulk."""
    query = select(reviewers.c.id).where(reviewers.c.name == BULK)
    if connection.execute(query).scalar() is None:
        add_reviewer(connection, BULK, admin=True)
        connection.execute(
            update(reviewers).where(reviewers.c.name == BULK).values(link=None, token_hash=None)
        )
    return int(connection.execute(query).scalar_one())


def count_reviewers(connection: Connection) -> int:
    """The number of reviewers with a link, without the admin."""
    present = ~reviewers.c.admin & reviewers.c.token_hash.is_not(None)
    query = select(func.count()).select_from(reviewers).where(present)
    return int(connection.execute(query).scalar_one())


def pause_reviewer(connection: Connection, reviewer: int, why: str) -> None:
    """Pauses a reviewer, or with an empty `why` lets them go on."""
    connection.execute(update(reviewers).where(reviewers.c.id == reviewer).values(paused=why))


def lock_reviewer(connection: Connection, reviewer: Reviewer) -> None:
    """Makes two requests of one reviewer wait for each other; SQLite has one writer anyway."""
    if connection.dialect.name != "sqlite":
        connection.execute(_LOCK_REVIEWER, {"reviewer": reviewer.id})


def lock_unit(connection: Connection, item: int) -> None:
    """Makes decisions on an anchor and its pairs, or on one image, wait for each other.

    The outcome of one depends on the others.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(_LOCK_UNIT, {"item": item})


def require_present(connection: Connection, joint: Sequence[str], item: int | None = None) -> None:
    """Makes unfinished items of some stages need a vote of every reviewer with a link.

    Votes of reviewers who left stand and count too. Closed items may be opened again. `item`: only
    this one.
    """
    standing_votes = (
        select(func.count())
        .select_from(assignments.join(reviewers, reviewers.c.id == assignments.c.reviewer))
        .where(assignments.c.item == items.c.id, assignments.c.answered)
        .where(reviewers.c.token_hash.is_(None))
        .scalar_subquery()
    )
    pending = (items.c.state != "done") & items.c.gold.is_(None) & items.c.stage.in_(joint)
    if item is not None:
        pending &= items.c.id == item
    needed = func.coalesce(func.nullif(count_reviewers(connection) + standing_votes, 0), 1)
    connection.execute(update(items).where(pending).values(needed=needed))


KEY_FILE = "review.key"
KEY_BYTES = 32


def read_key(folder: Path) -> bytes:
    """The key of a set's links, 32 bytes; made where there is none, readable by its owner alone.

    Raises `UsageError` where the file holds something else or can be neither read nor made.
    """
    path = folder / KEY_FILE
    try:
        if not path.is_file():
            _make_key(path)
        # a copy made by other tools may be open to others
        path.chmod(0o600)
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except OSError as error:
        raise UsageError(
            f"cannot use '{path}', the key of links: {error.strerror}; use a folder that you own"
        ) from error
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise UsageError(
            f"'{path}' holds no key of links; put it back, or delete it and --renew the links"
        )
    return key


def _make_key(path: Path) -> None:
    """Writes a new key; of two processes that do so at once the first one's stays."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(number, "w") as file:
            file.write(f"{secrets.token_hex(KEY_BYTES)}\n")
            file.flush()
            os.fsync(number)
        if not path.exists():
            Path(name).rename(path)
    finally:
        Path(name).unlink(missing_ok=True)


def make_token(key: bytes, nonce: str) -> str:
    """The token of a link: 256 bits that nobody can guess without the key (HMAC-SHA256)."""
    digest = hmac.digest(key, f"steadyeye link {nonce}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def hash_token(token: str) -> str:
    """The hash of a token, which is stored instead of it."""
    return hashlib.sha256(token.encode()).hexdigest()


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
