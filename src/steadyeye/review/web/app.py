"""The web app: pages for people, and the same as JSON for scripts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel, Field
from sqlalchemy import Connection
from starlette.exceptions import HTTPException as StarletteError
from starlette.middleware.trustedhost import TrustedHostMiddleware

from steadyeye.core.errors import UsageError
from steadyeye.core.format import format_value, span
from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.data.annotations.review_set import SetFolder, image_path
from steadyeye.review.bulk import skip_pairs
from steadyeye.review.database import Database
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import STAGES, list_labels
from steadyeye.review.results import status
from steadyeye.review.web import access
from steadyeye.review.workflow import decisions, queue
from steadyeye.review.workflow.decisions import (
    Decision,
    RefusedError,
    Rules,
    Submission,
    read_rules,
)

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).resolve().parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

TITLES = {401: "You are not signed in", 403: "Not allowed", 404: "Page not found"}
"""Status of a refusal → the heading of its page."""


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
        "csrf": access.make_csrf_word(request.cookies.get(access.COOKIE, "")),
    }
    return HTMLResponse(TEMPLATES.get_template(template).render(values), headers=headers)


def show_refusal(request: Request, error: Exception) -> Response:
    """Why a request was refused: as a page for people, as JSON for scripts."""
    status, detail = 500, "something went wrong"
    if isinstance(error, StarletteError):
        status, detail = error.status_code, error.detail
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"detail": detail}, status)
    values = {
        "set": request.app.state.folder.name,
        "reviewer": None,
        "title": TITLES.get(status, "This did not work"),
        "detail": detail,
        # without a link of one's own the overview would say the same
        "signed_in": status != 401,
    }
    return HTMLResponse(TEMPLATES.get_template("refused.html").render(values), status)


def format_share(successes: int, n: int) -> str:
    """A share with its 95 % interval (Clopper-Pearson); a dash where nothing was counted."""
    if n == 0:
        return "—"
    interval = span(*clopper_pearson(successes, n), "share")
    return f"{format_value(successes / n, 'share')} ({interval})"


TEMPLATES.filters["share"] = format_share


STATIC = Path(__file__).resolve().parent / "static"
IMAGE = re.compile(r"[0-9a-f]{64}\.jpg")

Who = Annotated[Reviewer, Depends(access.require_reviewer)]
Admin = Annotated[Reviewer, Depends(access.require_admin)]


class Withdrawal(BaseModel):
    """A decision to take back."""

    key: str = Field(min_length=8, max_length=64)


class Newcomer(BaseModel):
    """A reviewer to add."""

    name: str


class Pause(BaseModel):
    """Why a reviewer is paused; empty lets them go on."""

    why: str = Field(max_length=200)


def build_app(folder: SetFolder, database: Database, hosts: Sequence[str]) -> FastAPI:
    """The app over one set; `hosts`: the names under which it may be reached."""
    rules = read_rules(folder)
    app = FastAPI(title="steadyeye review", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.database, app.state.folder, app.state.rules = database, folder, rules
    with database.writing() as connection:
        queue.add_set_items(connection, folder, rules.plan)
        skip_pairs.advance_all(connection, rules.plan)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    app.add_middleware(access.guard_app)
    app.add_exception_handler(UsageError, _answer_error)
    app.add_exception_handler(StarletteError, show_refusal)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    _add_pages(app)
    _add_decisions(app)
    _add_administration(app)
    return app


def _add_pages(app: FastAPI) -> None:
    @app.get("/r/{token}")
    def enter(token: str, request: Request) -> Response:
        if access.find_reviewer(request, token) is None:
            raise HTTPException(401, "this link is not valid; ask the admin for a new one")
        answer = RedirectResponse("/", status_code=303)
        secure = request.url.scheme == "https"
        answer.set_cookie(access.COOKIE, token, httponly=True, samesite="lax", secure=secure)
        return answer

    @app.get("/")
    @app.get("/index.json")
    def show_index(request: Request, reviewer: Who) -> Response:
        with get_database(request).reading() as connection:
            stages = status.count_progress(connection, get_rules(request).plan, reviewer)
        return show_page(request, "index.html", reviewer, {"stages": stages})

    @app.get("/stages/{name}")
    def show_stage(name: str, request: Request, reviewer: Who) -> Response:
        rules, key = get_rules(request), name.removesuffix(".json")
        if key not in rules.plan.votes:
            raise HTTPException(404, f"this review has no stage '{key}'")
        content = get_database(request).write(
            lambda connection: _serve_next(connection, request, reviewer, key)
        )
        stage = STAGES[key]
        head = {"stage": key, "title": stage.title, "question": stage.question}
        classes = {"classes": list_labels(key, rules.classes)}
        return show_page(request, "stage.html", reviewer, {**head, **content, **classes})

    @app.get("/images/{name}")
    def send_image(name: str, request: Request, reviewer: Who) -> Response:
        folder: SetFolder = request.app.state.folder
        if not IMAGE.fullmatch(name) or name not in folder.images:
            raise HTTPException(404, "this set has no such image")
        headers = {"Cache-Control": "private, max-age=31536000, immutable"}
        return FileResponse(image_path(folder.root, name), media_type="image/jpeg", headers=headers)


def _add_decisions(app: FastAPI) -> None:
    @app.post("/decisions", dependencies=[Depends(access.require_own_page)])
    def decide(body: Submission, request: Request, reviewer: Who) -> JSONResponse:
        def work(connection: Connection) -> Mapping[str, Any]:
            decision = decisions.decide(connection, get_rules(request), reviewer, body)
            return _confirm(connection, request, decision)

        return JSONResponse(get_database(request).write(work))

    @app.post("/decisions/{decision}/undo", dependencies=[Depends(access.require_own_page)])
    def undo(decision: int, body: Withdrawal, request: Request, reviewer: Who) -> JSONResponse:
        def work(connection: Connection) -> Mapping[str, Any]:
            rules = get_rules(request)
            undone = decisions.undo(connection, rules, reviewer, decision, body.key)
            return _confirm(connection, request, undone)

        return JSONResponse(get_database(request).write(work))


def _add_administration(app: FastAPI) -> None:
    @app.get("/dashboard")
    @app.get("/dashboard.json")
    def show_dashboard(request: Request, reviewer: Admin) -> Response:
        with get_database(request).reading() as connection:
            plan = get_rules(request).plan
            summary = status.summarise(connection, request.app.state.folder, plan)
        return show_page(request, "dashboard.html", reviewer, summary)

    @app.post("/reviewers", dependencies=[Depends(access.require_own_page)])
    def add_reviewer(body: Newcomer, request: Request, reviewer: Admin) -> JSONResponse:
        joint = get_rules(request).plan.joint
        with get_database(request).writing() as connection:
            token = reviewers.add_reviewer(connection, body.name, joint=joint)
        return JSONResponse({"name": body.name, "link": f"{request.base_url}r/{token}"})

    @app.post("/reviewers/{number}/link", dependencies=[Depends(access.require_own_page)])
    def renew_link(number: int, request: Request, reviewer: Admin) -> JSONResponse:
        with get_database(request).writing() as connection:
            names = {person.id: person.name for person in reviewers.list_reviewers(connection)}
            if number not in names:
                raise HTTPException(404, f"there is no reviewer {number}")
            token = reviewers.renew_token(connection, names[number])
        return JSONResponse({"name": names[number], "link": f"{request.base_url}r/{token}"})

    @app.post("/reviewers/{number}/pause", dependencies=[Depends(access.require_own_page)])
    def pause_reviewer(number: int, body: Pause, request: Request, reviewer: Admin) -> JSONResponse:
        with get_database(request).writing() as connection:
            reviewers.pause_reviewer(connection, number, body.why)
        return JSONResponse({"reviewer": number, "paused": body.why})


def _serve_next(
    connection: Connection, request: Request, reviewer: Reviewer, stage: str
) -> Mapping[str, Any]:
    """The next items of a reviewer in a stage, and why they are paused."""
    served = queue.serve_items(connection, get_rules(request).plan, reviewer, stage)
    return {"next": [asdict(item) for item in served], "paused": reviewer.paused}


def _confirm(connection: Connection, request: Request, decision: Decision) -> Mapping[str, Any]:
    """The id of a decision, and what is next in its stage."""
    following = _serve_next(connection, request, decision.reviewer, decision.stage)
    return {"decision": decision.id, **following}


def get_database(request: Request) -> Database:
    """The database of the set."""
    return request.app.state.database  # type: ignore[no-any-return]


def get_rules(request: Request) -> Rules:
    """The rules that answers are held to."""
    return request.app.state.rules  # type: ignore[no-any-return]


def _answer_error(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 409 if isinstance(error, RefusedError) else 422)
