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
from steadyeye.review.db.database import Database
from steadyeye.review.protocol import plan, reviewers
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import STAGES, list_labels
from steadyeye.review.results import status
from steadyeye.review.web import access
from steadyeye.review.workflow import decisions, items, queue
from steadyeye.review.workflow.decisions import Decided, Given, RefusedError, Rules

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
    if isinstance(error, StarletteError):
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


STATIC = Path(__file__).resolve().parent / "static"
IMAGE = re.compile(r"[0-9a-f]{64}\.jpg")

Who = Annotated[Reviewer, Depends(access.who)]
Admin = Annotated[Reviewer, Depends(access.admin)]


class Answered(BaseModel):
    """A decision as the page sends it."""

    assignment: int
    nonce: str = Field(max_length=64)
    key: str = Field(min_length=8, max_length=64)
    answer: dict[str, Any]
    seconds: float = Field(ge=0, allow_inf_nan=False)
    comment: str = Field(default="", max_length=2000)
    seen: int | None = None


class TakenBack(BaseModel):
    """A decision to take back."""

    key: str = Field(min_length=8, max_length=64)


class Newcomer(BaseModel):
    """A reviewer to add."""

    name: str = Field(min_length=1, max_length=80)


class Pause(BaseModel):
    """Why a reviewer is paused; empty lets them go on."""

    why: str = Field(max_length=200)


def app(folder: SetFolder, database: Database, hosts: Sequence[str]) -> FastAPI:
    """The app over one set; `hosts`: the names under which it may be reached."""
    made = FastAPI(title="steadyeye review", docs_url=None, redoc_url=None, openapi_url=None)
    made.state.database = database
    made.state.folder = folder
    names = folder.classes.names if folder.classes else ()
    made.state.rules = Rules(plan.read(folder.content), names, folder.fingerprint)
    with database.writing() as connection:
        items.fill(connection, folder, made.state.rules.plan)
        skip_pairs.begin(connection, made.state.rules.plan)
    made.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    made.add_middleware(access.guard_app)
    made.add_exception_handler(UsageError, _answer_error)
    made.add_exception_handler(StarletteError, show_refusal)
    made.mount("/static", StaticFiles(directory=STATIC), name="static")
    _readers(made)
    _writers(made)
    _administration(made)
    return made


def _readers(made: FastAPI) -> None:
    @made.get("/r/{token}")
    def enter(token: str, request: Request) -> Response:
        with database_of(request).reading() as connection:
            if reviewers.by_token(connection, token) is None:
                raise HTTPException(401, "this link is not valid; ask the admin for a new one")
        answer = RedirectResponse("/", status_code=303)
        secure = request.url.scheme == "https"
        answer.set_cookie(access.COOKIE, token, httponly=True, samesite="lax", secure=secure)
        return answer

    @made.get("/")
    @made.get("/index.json")
    def index(request: Request, reviewer: Who) -> Response:
        with database_of(request).reading() as connection:
            found = status.progress(connection, rules_of(request).plan, reviewer)
        return page(request, "index.html", reviewer, {"stages": found})

    @made.get("/stages/{name}")
    def stage(name: str, request: Request, reviewer: Who) -> Response:
        wanted = name.removesuffix(".json")
        if wanted not in rules_of(request).plan.votes:
            raise HTTPException(404, f"this review has no stage '{wanted}'")
        content = database_of(request).write(
            lambda connection: _next(connection, request, reviewer, wanted)
        )
        shown = STAGES[wanted]
        told = {"stage": wanted, "title": shown.title, "question": shown.question, **content}
        told["classes"] = list_labels(wanted, rules_of(request).classes)
        return page(request, "stage.html", reviewer, told)

    @made.get("/images/{name}")
    def image(name: str, request: Request, reviewer: Who) -> Response:
        folder: SetFolder = request.app.state.folder
        if not IMAGE.fullmatch(name) or name not in folder.images:
            raise HTTPException(404, "this set has no such image")
        kept = {"Cache-Control": "private, max-age=31536000, immutable"}
        return FileResponse(image_path(folder.root, name), media_type="image/jpeg", headers=kept)


def _writers(made: FastAPI) -> None:
    @made.post("/decisions", dependencies=[Depends(access.genuine)])
    def decide(body: Answered, request: Request, reviewer: Who) -> JSONResponse:
        given = Given(**body.model_dump())

        def work(connection: Connection) -> Mapping[str, Any]:
            done = decisions.decide(connection, rules_of(request), reviewer, given)
            return _after(connection, request, done)

        return JSONResponse(database_of(request).write(work))

    @made.post("/decisions/{decision}/undo", dependencies=[Depends(access.genuine)])
    def undo(decision: int, body: TakenBack, request: Request, reviewer: Who) -> JSONResponse:

        def work(connection: Connection) -> Mapping[str, Any]:
            ask = (decision, body.key)
            done = decisions.undo(connection, rules_of(request), reviewer, ask)
            return _after(connection, request, done)

        return JSONResponse(database_of(request).write(work))


def _administration(made: FastAPI) -> None:
    @made.get("/dashboard")
    @made.get("/dashboard.json")
    def dashboard(request: Request, reviewer: Admin) -> Response:
        with database_of(request).reading() as connection:
            told = status.status(connection, request.app.state.folder, rules_of(request).plan)
        return page(request, "dashboard.html", reviewer, told)

    @made.post("/reviewers", dependencies=[Depends(access.genuine)])
    def newcomer(body: Newcomer, request: Request, reviewer: Admin) -> JSONResponse:
        joint = [name for name, votes in rules_of(request).plan.votes.items() if votes == 0]
        with database_of(request).writing() as connection:
            token = reviewers.add(connection, body.name, joint=joint)
        return JSONResponse({"name": body.name, "link": f"{request.base_url}r/{token}"})

    @made.post("/reviewers/{number}/link", dependencies=[Depends(access.genuine)])
    def renew_link(number: int, request: Request, reviewer: Admin) -> JSONResponse:
        with database_of(request).writing() as connection:
            names = {one.id: one.name for one in reviewers.everyone(connection)}
            if number not in names:
                raise HTTPException(404, f"there is no reviewer {number}")
            token = reviewers.renew(connection, names[number])
        return JSONResponse({"name": names[number], "link": f"{request.base_url}r/{token}"})

    @made.post("/reviewers/{number}/pause", dependencies=[Depends(access.genuine)])
    def pause(number: int, body: Pause, request: Request, reviewer: Admin) -> JSONResponse:
        with database_of(request).writing() as connection:
            reviewers.pause(connection, number, body.why)
        return JSONResponse({"reviewer": number, "paused": body.why})


def _next(
    connection: Connection, request: Request, reviewer: Reviewer, stage: str
) -> Mapping[str, Any]:
    served = queue.serve(connection, rules_of(request).plan, reviewer, stage)
    return {"next": [asdict(each) for each in served], "paused": reviewer.paused}


def _after(connection: Connection, request: Request, done: Decided) -> Mapping[str, Any]:
    """What is told of a decision: its id, and what is next in its stage."""
    return {"decision": done.id, **_next(connection, request, done.reviewer, done.stage)}


def database_of(request: Request) -> Database:
    """The database of the set."""
    return request.app.state.database  # type: ignore[no-any-return]


def rules_of(request: Request) -> Rules:
    """What answers are held to."""
    return request.app.state.rules  # type: ignore[no-any-return]


def _answer_error(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 409 if isinstance(error, RefusedError) else 422)
