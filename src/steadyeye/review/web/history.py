"""Pages that list decisions: a reviewer's own, and items for the admin."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from steadyeye.review.protocol.stages import STAGES
from steadyeye.review.results import history
from steadyeye.review.results.history import HistoryFilter
from steadyeye.review.web.pages import Admin, Who, get_database, get_rules, show_page

router = APIRouter()

Name = Annotated[str, Query(max_length=40)]
Text = Annotated[str, Query(max_length=200)]
Page = Annotated[int, Query(ge=1, le=10**6)]


@router.get("/decisions")
@router.get("/decisions.json")
def show_own(
    request: Request, reviewer: Who, stage: Name = "", answer: Name = "", text: Text = "",
    page: Page = 1,
) -> Response:  # fmt: skip
    """The reviewer's own decisions, which can be changed or taken back."""
    search = HistoryFilter(stage, answer, _clean(text), page)
    with get_database(request).reading() as connection:
        entries = history.list_own(connection, reviewer.id, search)
    return show_page(request, "decisions.html", reviewer, {**entries, **_describe(request, search)})


@router.get("/items")
@router.get("/items.json")
def show_items(
    request: Request, reviewer: Admin, kind: Name = "disputed", stage: Name = "", text: Text = "",
    page: Page = 1,
) -> Response:  # fmt: skip
    """Items of a kind with all answers, for the admin."""
    search = HistoryFilter(stage, "", _clean(text), page)
    with get_database(request).reading() as connection:
        entries = history.browse_items(connection, kind, search)
    more = {"kind": kind, "kinds": list(history.KINDS), **_describe(request, search, kind=kind)}
    return show_page(request, "items.html", reviewer, {**entries, **more})


def _clean(text: str) -> str:
    """A text without characters that PostgreSQL cannot store."""
    return text.replace("\0", "").strip()


def _describe(request: Request, search: HistoryFilter, **more: str) -> Mapping[str, Any]:
    """The search, its possible values, and its query string without the page."""
    values = {**more, **asdict(search)}
    del values["page"]
    return {
        "search": asdict(search),
        "stages": _list_stages(request),
        "answers": list(history.ANSWERS),
        "query": urlencode({key: value for key, value in values.items() if value}),
    }


def _list_stages(request: Request) -> Sequence[Mapping[str, str]]:
    return [{"stage": name, "title": STAGES[name].title} for name in get_rules(request).plan.votes]
