"""Reads request bodies strictly and refuses values that no database can store."""

import json
from collections.abc import Callable, Coroutine
from math import isfinite
from typing import Any

from fastapi import HTTPException, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

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
