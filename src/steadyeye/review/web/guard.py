"""Limits on the size, the time and the content of every request, and headers of every response."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from math import isfinite
from typing import Any, TypeAlias

from fastapi import HTTPException, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

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


DEEPEST = 20  # lists and objects in each other; an answer has four
LARGEST = 1 << 53  # up to which JavaScript counts exactly


class CheckedRoute(APIRoute):
    """A route whose requests have a JSON body that `parse_body` accepts."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of a request."""
        answer = super().get_route_handler()

        async def answer_checked(request: Request) -> Response:
            return await answer(_CheckedRequest(request.scope, request.receive))

        return answer_checked


class _CheckedRequest(Request):
    async def json(self) -> Any:
        return parse_body(await self.body())


def parse_body(body: bytes) -> Any:
    """The JSON of a body.

    Raises 400 for invalid JSON, and 422 for numbers beyond 2^53 or not finite, invalid characters
    (NUL, half of a surrogate pair), and values that are nested too deeply.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "the request is not valid JSON") from None
    level = [content]
    for _ in range(DEEPEST):
        level = [part for value in level for part in _split(value)]
        if not level:
            return content
    raise HTTPException(422, f"the request is nested more than {DEEPEST} deep")


def _split(value: Any) -> list[Any]:
    """The values directly within a value, which is checked itself."""
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
            raise HTTPException(422, "the request holds an invalid character (NUL or a surrogate)")
    elif isinstance(value, int | float) and not (isfinite(value) and abs(value) <= LARGEST):
        raise HTTPException(422, "the request holds a number that is too large or not finite")
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []
