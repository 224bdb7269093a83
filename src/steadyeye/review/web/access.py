"""Who may do what: the private link's cookie, the guard against forged requests, and headers."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from steadyeye.review.database import Database
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.reviewers import Reviewer

COOKIE = "steadyeye_review"
MOST_BYTES = 256 << 10  # a page of a few hundred boxes is a tenth of it

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def find_reviewer(request: Request, token: str) -> Reviewer | None:
    """The reviewer whose link has a token; None for anybody else."""
    database: Database = request.app.state.database
    with database.reading() as connection:
        return reviewers.find_by_token(connection, token) if token else None


def require_reviewer(request: Request) -> Reviewer:
    """The reviewer whose link opened this session; 401 for anybody else."""
    reviewer = find_reviewer(request, request.cookies.get(COOKIE, ""))
    if reviewer is None:
        raise HTTPException(
            401, "open your private link first; if you lost it, ask the admin for a new one"
        )
    return reviewer


def require_admin(request: Request) -> Reviewer:
    """The admin; 403 for a reviewer."""
    reviewer = require_reviewer(request)
    if not reviewer.admin:
        raise HTTPException(403, "only the admin may do this")
    return reviewer


def require_own_page(request: Request) -> None:
    """Refuses a request that our own page did not make.

    It must carry the session's own word, which no other site can read, and come from this origin.
    """
    expected = make_csrf_word(request.cookies.get(COOKIE, ""))
    received = request.headers.get("x-csrf-token", "")
    if not hmac.compare_digest(expected.encode(), received.encode()):
        raise HTTPException(403, "the request did not come from this page; reload it")
    origin = request.headers.get("origin")
    if origin and urlsplit(origin).netloc != request.headers.get("host", ""):
        raise HTTPException(403, "the request came from another site")
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise HTTPException(415, "send JSON")


def make_csrf_word(token: str) -> str:
    """The word that a page of a session must send back with every change."""
    return hashlib.sha256(f"steadyeye csrf {token}".encode()).hexdigest()


def guard_app(app: Application) -> Application:
    """The app with a limit on what it reads and headers on all that it sends."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        taken = 0

        async def receive_limited() -> MutableMapping[str, Any]:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise HTTPException(413, f"a request holds at most {MOST_BYTES >> 10} kB")
            return message

        async def send_headed(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *((k.lower().encode(), v.encode()) for k, v in HEADERS.items()),
                ]
            await send(message)

        length = next((v for k, v in scope["headers"] if k == b"content-length"), b"0")
        if not length.isdigit() or int(length) > MOST_BYTES:
            await _refuse_large(send_headed)
            return
        await app(scope, receive_limited, send_headed)

    return serve


async def _refuse_large(send: Send) -> None:
    text = f'{{"detail": "a request holds at most {MOST_BYTES >> 10} kB"}}'.encode()
    kind = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 413, "headers": kind})
    await send({"type": "http.response.body", "body": text})
