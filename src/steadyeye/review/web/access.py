"""Access control: links, sessions, and protection against forged requests."""

import hashlib
import hmac
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from steadyeye.review.protocol import reviewers, sessions
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.sessions import Lifetime
from steadyeye.review.transactions import Database, UnavailableError
from steadyeye.review.web.guesses import Guesses

COOKIE = "steadyeye_review"
LINK = "/r#"
INVALID_LINK = "this link is not valid; ask the admin for a new one"


@dataclass(frozen=True)
class Access:
    """How a review may be reached.

    `url`: the public address in front of a proxy; None: there is none. `key`: that of the links;
    None: no link can be shown again. `guesses`: recent wrong links.
    """

    url: str | None = None
    key: bytes | None = None
    lifetime: Lifetime = field(default_factory=Lifetime)
    guesses: Guesses = field(default_factory=Guesses)

    @property
    def secure(self) -> bool:
        """Whether a proxy ends TLS in front of the server, even if its headers do not say so."""
        return urlsplit(self.url or "").scheme == "https"


def get_access(request: Request) -> Access:
    """How the review may be reached."""
    return request.app.state.access  # type: ignore[no-any-return]


def make_link(request: Request, token: str) -> str:
    """A private link.

    Its part after # is never sent, so that no log, proxy or other page sees it.
    """
    base = get_access(request).url or str(request.base_url).rstrip("/")
    return f"{base}{LINK}{token}"


def sign_in(request: Request, token: str, answer: Response) -> tuple[Reviewer, str]:
    """The reviewer whose link has the token; a new session is set as a cookie of the response.

    The earlier session of the browser ends. 401 for any other token, 429 after too many of them.
    """
    access, address = get_access(request), request.client.host if request.client else ""
    access.guesses.check(address)
    database: Database = request.app.state.database
    with database.reading() as connection:
        reviewer = reviewers.find_by_token(connection, token)
    if reviewer is None:
        access.guesses.add(address)
        raise HTTPException(401, INVALID_LINK)

    def work(connection: Connection) -> str:
        # once more: it may have been revoked meanwhile
        reviewers.lock_reviewer(connection, reviewer)
        if reviewers.find_by_token(connection, token) is None:
            raise HTTPException(401, INVALID_LINK)
        sessions.end_session(connection, request.cookies.get(COOKIE, ""))
        return sessions.open_session(connection, reviewer, access.lifetime)

    word = database.write(work)
    secure = access.secure or request.url.scheme == "https"
    most = int(access.lifetime.whole)
    answer.set_cookie(COOKIE, word, most, httponly=True, samesite="lax", secure=secure)
    return reviewer, word


def sign_out(request: Request, answer: Response) -> None:
    """Ends the session of a request, in the database and in the browser."""
    word = request.cookies.get(COOKIE, "")
    database: Database = request.app.state.database
    database.write(lambda connection: sessions.end_session(connection, word))
    answer.delete_cookie(COOKIE, httponly=True, samesite="lax")


def require_reviewer(request: Request) -> Reviewer:
    """The reviewer who is signed in; 401 for anybody else."""
    word = request.cookies.get(COOKIE, "")
    database: Database = request.app.state.database
    lifetime = get_access(request).lifetime
    with database.reading() as connection:
        session = sessions.find_session(connection, word, lifetime) if word else None
    if session is None:
        raise HTTPException(
            401, "open your private link first; if you lost it, ask the admin for a new one"
        )
    if session.stale:
        # what cannot be written now may still be read
        with suppress(UnavailableError):
            database.write(lambda connection: sessions.touch_session(connection, word))
    return session.reviewer


def require_admin(request: Request) -> Reviewer:
    """The admin; 403 for a reviewer."""
    reviewer = require_reviewer(request)
    if not reviewer.admin:
        raise HTTPException(403, "only the admin may do this")
    return reviewer


def require_own_page(request: Request) -> None:
    """Refuses a request without the CSRF token of its session.

    It must carry the session's token, which no other site can read, and come from this origin.
    """
    expected = make_csrf_word(request.cookies.get(COOKIE, ""))
    received = request.headers.get("x-csrf-token", "")
    if not hmac.compare_digest(expected.encode(), received.encode()):
        raise HTTPException(403, "the request did not come from this page; reload it")
    require_own_origin(request)


def require_own_origin(request: Request) -> None:
    """Refuses a request of another site: of another origin, or sent by a form."""
    origin = request.headers.get("origin")
    if origin and urlsplit(origin).netloc != request.headers.get("host", ""):
        raise HTTPException(403, "the request came from another site")
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise HTTPException(415, "send JSON")


def make_csrf_word(session: str) -> str:
    """The CSRF token that a page of a session must send with every change."""
    return hashlib.sha256(f"steadyeye csrf {session}".encode()).hexdigest()
