"""What every page needs, and the pages beside those of the stages: history, guidelines, study."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from steadyeye.core.format import format_agreement_ends, format_value, interval, percent, span
from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.data.classes.meanings import list_class_words
from steadyeye.metrics.label_studies.difference_study import DifferenceStudy
from steadyeye.review.protocol.guidelines import PICTURES, find_file
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import STAGES
from steadyeye.review.results import history
from steadyeye.review.results.history import HistoryFilter
from steadyeye.review.studies.live_study import LiveStudy
from steadyeye.review.studies.study_summary import describe_difference, describe_study
from steadyeye.review.transactions import Database
from steadyeye.review.web import access
from steadyeye.review.workflow.decisions import Rules

Who = Annotated[Reviewer, Depends(access.require_reviewer)]
Admin = Annotated[Reviewer, Depends(access.require_admin)]

router, study_router = APIRouter(), APIRouter()

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


# HTML in a text is shown as text, and links to scripts are none
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def render_guidelines(text: str) -> Markup:
    """A text in Markdown as HTML, with headings below that of the page and pictures of the set."""
    tokens = MARKDOWN.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
        for part in token.children or ():
            if part.type == "image":
                name = PurePosixPath(str(part.attrs["src"])).name
                part.attrs = {**part.attrs, "src": f"/guidelines/{name}", "loading": "lazy"}
            elif part.type == "link_open":
                part.attrs = {**part.attrs, "target": "_blank", "rel": "noopener noreferrer"}
    # rendered by a parser that escapes what its text holds
    return Markup(MARKDOWN.renderer.render(tokens, MARKDOWN.options, {}))  # noqa: S704


@router.get("/guidelines/{name}")
def send_picture(name: str, request: Request, reviewer: Who) -> Response:
    """A picture that lies beside the texts of the set."""
    kind = PICTURES.get(PurePosixPath(name).suffix.lower())
    path = find_file(request.app.state.folder.root, name) if kind else None
    if path is None:
        raise HTTPException(404, "the guidelines have no such picture")
    return FileResponse(path, media_type=kind, headers={"Cache-Control": "no-cache"})


@study_router.get("/study")
@study_router.get("/study.json")
def show_study(request: Request, reviewer: Who) -> Response:
    """The page of the study; as JSON with every number."""
    live = get_study(request)
    assert isinstance(live, LiveStudy), "the routes are those of a study"
    with get_database(request).reading() as connection:
        two = isinstance(live.study, DifferenceStudy)
        content = (describe_difference if two else describe_study)(connection, live)
    more = {} if request.url.path.endswith(".json") else {"content": content}
    return show_page(request, "study.html", reviewer, {**content, **more})


@study_router.get("/stages/labels/words.json")
def list_words(request: Request, reviewer: Who) -> JSONResponse:
    """The words by which classes are found, as indices of the classes of the stage."""
    headers = {"Cache-Control": "private, max-age=3600"}
    return JSONResponse(
        {"words": list_class_words(tuple(get_rules(request).classes))}, headers=headers
    )
