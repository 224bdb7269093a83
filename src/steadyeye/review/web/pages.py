"""Dependencies of every page: templates, the reviewer, the set's database and rules."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from steadyeye.core.format import format_agreement_ends, format_value, interval, percent, span
from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.studies.live_study import LiveStudy
from steadyeye.review.transactions import Database
from steadyeye.review.web import access
from steadyeye.review.workflow.decisions import Rules

Who = Annotated[Reviewer, Depends(access.require_reviewer)]
Admin = Annotated[Reviewer, Depends(access.require_admin)]

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).resolve().parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def show_page(
    request: Request, template: str, reviewer: Reviewer, content: Mapping[str, Any]
) -> Response:
    """A page, or its content as JSON; nothing of it may be kept by a cache."""
    headers = {"Cache-Control": "no-store"}
    if request.url.path.endswith(".json"):
        return JSONResponse(dict(content), headers=headers)
    values = {
        **content,
        "set": request.app.state.folder.name,
        "version": request.app.state.folder.fingerprint,
        "reviewer": reviewer,
        "is_study": get_study(request) is not None,
        "csrf": access.make_csrf_word(request.cookies.get(access.COOKIE, "")),
    }
    return HTMLResponse(TEMPLATES.get_template(template).render(values), headers=headers)


def format_share(successes: int, n: int) -> str:
    """A share with its 95 % interval (Clopper-Pearson); a dash where nothing was counted."""
    if n == 0:
        return "—"
    ends = span(*clopper_pearson(successes, n), "share")
    return f"{format_value(successes / n, 'share')} ({ends})"


TEMPLATES.filters["share"] = format_share
TEMPLATES.globals.update(ends=format_agreement_ends, interval=interval, percent=percent)


def format_moment(seconds: float) -> str:
    """A moment, seconds since 1970, in UTC to the minute."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


TEMPLATES.filters["moment"] = format_moment
TEMPLATES.filters["zip"] = zip


def get_database(request: Request) -> Database:
    """The database of the set."""
    return request.app.state.database  # type: ignore[no-any-return]


def get_rules(request: Request) -> Rules:
    """The rules for answers."""
    return request.app.state.rules  # type: ignore[no-any-return]


def get_study(request: Request) -> LiveStudy | None:
    """The label study; None for the review of a set."""
    return request.app.state.study  # type: ignore[no-any-return]
