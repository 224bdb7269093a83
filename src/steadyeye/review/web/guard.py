"""Limits on the size and the time of every request, and headers of every response."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from fastapi import HTTPException

MOST_BYTES = 256 << 10  # a page of a few hundred boxes is a tenth of it
TOO_LARGE = f"a request holds at most {MOST_BYTES >> 10} kB"
BODY_SECONDS = 30.0  # in which a whole request must have come
CLOSE = {"Connection": "close"}
"""Header of a response to a request that is not read to its end, so that the connection closes."""

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
TLS_HEADERS = {"Strict-Transport-Security": "max-age=31536000"}
"""Sent behind TLS only: a browser then refuses plain HTTP to this host for a year."""

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def guard_app(app: Application, *, secure: bool = False) -> Application:
    """The app with limits on what it reads, and headers on all that it sends.

    `secure`: a proxy ends TLS in front of it, even if its headers do not say so.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        taken, complete = 0, False
        deadline = asyncio.get_running_loop().time() + BODY_SECONDS
        tls = secure or scope["scheme"] == "https"
        headers = encode_headers({**HEADERS, **(TLS_HEADERS if tls else {})})

        async def receive_limited() -> MutableMapping[str, Any]:
            nonlocal taken, complete
            try:
                # afterwards there is only the end of the connection to wait for
                async with asyncio.timeout_at(None if complete else deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "the request came too slowly", CLOSE) from None
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise HTTPException(413, TOO_LARGE, CLOSE)
            complete = not message.get("more_body", False)
            return message

        async def send_headed(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *headers]
            await send(message)

        length = next((v for k, v in scope["headers"] if k == b"content-length"), b"0")
        if not length.isdigit() or int(length) > MOST_BYTES:
            await _refuse_large(send_headed)
            return
        await app(scope, receive_limited, send_headed)

    return serve


def encode_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI has them."""
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


async def _refuse_large(send: Send) -> None:
    text = f'{{"detail": "{TOO_LARGE}"}}'.encode()
    kind = encode_headers({"Content-Type": "application/json", **CLOSE})
    await send({"type": "http.response.start", "status": 413, "headers": kind})
    await send({"type": "http.response.body", "body": text})
