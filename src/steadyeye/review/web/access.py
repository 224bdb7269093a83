"""Access control: links, sessions, and protection against forged requests and guessed links."""

import hashlib
import hmac
import ipaddress
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.reviewers import Lifetime, Reviewer
from steadyeye.review.transactions import Database, UnavailableError

COOKIE = "steadyeye_review"
LINK = "/r#"
INVALID_LINK = "this link is not valid; ask the admin for a new one"


WINDOW = 60.0  # seconds
MOST_OF_ADDRESS = 10
MOST = 300  # of all addresses together


@dataclass(eq=False)
class Guesses:
    """The wrong links of the last minute, with the network that each came from; in memory.

    Its size is bounded by `MOST`, because no more tries are allowed. `clock`: monotonic seconds.
    """

    clock: Callable[[], float] = time.monotonic
    recent: deque[tuple[float, str]] = field(default_factory=deque)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, address: str) -> None:
        """Raises 429 if an address, or all together, had too many wrong links."""
        network = find_network(address)
        with self.lock:
            now = self.clock()
            while self.recent and self.recent[0][0] <= now - WINDOW:
                self.recent.popleft()
            own = [moment for moment, other in self.recent if other == network]
            if len(own) < MOST_OF_ADDRESS and len(self.recent) < MOST:
                return
            first = own[0] if len(own) >= MOST_OF_ADDRESS else self.recent[0][0]
            seconds = int(first + WINDOW - now) + 1
        raise HTTPException(
            429,
            f"too many links were wrong; try again in {seconds} s",
            headers={"Retry-After": str(seconds)},
        )

    def add(self, address: str) -> None:
        """Notes a wrong link."""
        with self.lock:
            self.recent.append((self.clock(), find_network(address)))


def find_network(address: str) -> str:
    """The network of an address: for IPv6 its /64, all of which one user has."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return address
    # a client that reaches an IPv6 socket by IPv4
    if ip.ipv4_mapped:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((int(ip), 64), strict=False).network_address)


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
        reviewers.end_session(connection, request.cookies.get(COOKIE, ""))
        return reviewers.open_session(connection, reviewer, access.lifetime)

    word = database.write(work)
    secure = access.secure or request.url.scheme == "https"
    most = int(access.lifetime.whole)
    answer.set_cookie(COOKIE, word, most, httponly=True, samesite="lax", secure=secure)
    return reviewer, word


def sign_out(request: Request, answer: Response) -> None:
    """Ends the session of a request, in the database and in the browser."""
    word = request.cookies.get(COOKIE, "")
    database: Database = request.app.state.database
    database.write(lambda connection: reviewers.end_session(connection, word))
    answer.delete_cookie(COOKIE, httponly=True, samesite="lax")


def require_reviewer(request: Request) -> Reviewer:
    """The reviewer who is signed in; 401 for anybody else."""
    word = request.cookies.get(COOKIE, "")
    database: Database = request.app.state.database
    lifetime = get_access(request).lifetime
    with database.reading() as connection:
        session = reviewers.find_session(connection, word, lifetime) if word else None
    if session is None:
        raise HTTPException(
            401, "open your private link first; if you lost it, ask the admin for a new one"
        )
    if session.stale:
        # what cannot be written now may still be read
        with suppress(UnavailableError):
            database.write(lambda connection: reviewers.touch_session(connection, word))
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
