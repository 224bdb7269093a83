"""A page as HTML, or as JSON where its address ends in `.json`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException

from steadyeye.core.format import format_value, span
from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.web import access

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).resolve().parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

TITLES = {401: "You are not signed in", 403: "Not allowed", 404: "Page not found"}
"""Status of a refusal → the heading of its page."""


def page(
    request: Request, template: str, reviewer: Reviewer, content: Mapping[str, Any]
) -> Response:
    """What a page shows; nothing of it may be kept by a cache."""
    kept = {"Cache-Control": "no-store"}
    if request.url.path.endswith(".json"):
        return JSONResponse(dict(content), headers=kept)
    told = {
        **content,
        "set": request.app.state.folder.name,
        "version": request.app.state.folder.fingerprint,
        "reviewer": reviewer,
        "csrf": access.word(request.cookies.get(access.COOKIE, "")),
    }
    return HTMLResponse(TEMPLATES.get_template(template).render(told), headers=kept)


def show_refusal(request: Request, error: Exception) -> Response:
    """Why a request was refused: as a page for people, as JSON for scripts."""
    status, detail = 500, "something went wrong"
    if isinstance(error, HTTPException):
        status, detail = error.status_code, error.detail
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"detail": detail}, status)
    told = {
        "set": request.app.state.folder.name,
        "reviewer": None,
        "title": TITLES.get(status, "This did not work"),
        "detail": detail,
        # without a link of one's own the overview would say the same
        "signed_in": status != 401,
    }
    return HTMLResponse(TEMPLATES.get_template("refused.html").render(told), status)


def share(successes: int, n: int) -> str:
    """A share with its 95 % interval (Clopper-Pearson); a dash where nothing was counted."""
    if n == 0:
        return "—"
    interval = span(*clopper_pearson(successes, n), "share")
    return f"{format_value(successes / n, 'share')} ({interval})"


TEMPLATES.filters["share"] = share
