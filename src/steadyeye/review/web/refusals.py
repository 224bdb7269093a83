"""Responses to requests that are refused or cannot be served now."""

import logging
import time
from dataclasses import dataclass
from math import inf

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException as StarletteError

from steadyeye.core.errors import UsageError
from steadyeye.review.transactions import UnavailableError
from steadyeye.review.web.pages import TEMPLATES
from steadyeye.review.workflow.decisions import RefusedError

TITLES = {
    401: "You are not signed in",
    403: "Not allowed",
    404: "Page not found",
    503: "Not available now",
}
"""Status of a refusal → the heading of its page."""
RETRY_SECONDS = 2  # after which a page sends the same request again
QUIET_SECONDS = 30.0  # in which the terminal does not say the same again
LONGEST = 300  # characters of a reason

logger = logging.getLogger("uvicorn.error")


@dataclass
class FailureLog:
    """Prints why nothing is stored: at once, and again while the failure lasts."""

    reason: str = ""
    said_at: float = -inf

    def note(self, error: UnavailableError) -> None:
        """Records that a request could not be served."""
        now = time.monotonic()
        if str(error) != self.reason or now - self.said_at > QUIET_SECONDS:
            self.reason, self.said_at = str(error), now
            cause = f" ({error.cause})" if error.cause else ""
            logger.error("not stored, and asked to be sent again: %s%s", error, cause)


def add_refusals(app: FastAPI) -> None:
    """Adds responses to all errors of the app: pages for people, JSON for scripts."""
    app.state.failures = FailureLog()
    app.add_exception_handler(UnavailableError, _answer_unavailable)
    app.add_exception_handler(UsageError, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(StarletteError, _answer_http)
    app.add_exception_handler(Exception, _answer_fault)


def _answer_unavailable(request: Request, error: Exception) -> Response:
    assert isinstance(error, UnavailableError), "it is registered for this kind"
    request.app.state.failures.note(error)
    headers = {"Retry-After": str(RETRY_SECONDS), "Cache-Control": "no-store"}
    return _answer(request, 503, str(error), headers)


def _answer_error(request: Request, error: Exception) -> Response:
    return _answer(request, 409 if isinstance(error, RefusedError) else 422, str(error))


def _answer_invalid(request: Request, error: Exception) -> Response:
    """The first fault; the sent value is not repeated, because it may be no text."""
    assert isinstance(error, RequestValidationError), "it is registered for this kind"
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    return _answer(request, 422, f"{place}: {first['msg']}"[:LONGEST])


def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteError), "it is registered for this kind"
    return _answer(request, error.status_code, error.detail, dict(error.headers or {}))


def _answer_fault(request: Request, error: Exception) -> Response:
    return _answer(request, 500, "something went wrong")


def _answer(
    request: Request, status: int, detail: str, headers: dict[str, str] | None = None
) -> Response:
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"detail": detail}, status, headers)
    values = {
        "set": request.app.state.folder.name,
        "reviewer": None,
        "title": TITLES.get(status, "This did not work"),
        "detail": detail,
        # without a link of one's own the overview would say the same
        "signed_in": status not in (401, 503),
        "again": status == 503,
    }
    return HTMLResponse(TEMPLATES.get_template("refused.html").render(values), status, headers)
