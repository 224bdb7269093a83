"""The web app: pages for people, and the same as JSON for scripts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, Field
from sqlalchemy import Connection
from starlette.middleware.trustedhost import TrustedHostMiddleware

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.protocol import guidelines, reviewers
from steadyeye.review.protocol.counts import read_item_counts
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import STAGES, list_labels
from steadyeye.review.results import status
from steadyeye.review.results.agreement import BackgroundMeasurement
from steadyeye.review.studies.live_study import LiveStudy
from steadyeye.review.transactions import Database
from steadyeye.review.web import access
from steadyeye.review.web.access import Access
from steadyeye.review.web.guard import CheckedRoute, guard_app
from steadyeye.review.web.pages import (
    TEMPLATES,
    Admin,
    Who,
    get_database,
    get_rules,
    get_study,
    render_guidelines,
    router,
    show_page,
    study_router,
)
from steadyeye.review.web.pictures import Pictures
from steadyeye.review.web.refusals import add_refusals
from steadyeye.review.workflow import decisions, members, queue, quiz, sequences
from steadyeye.review.workflow.decisions import Decision, Submission, read_rules

STATIC = Path(__file__).resolve().parent / "static"
IMAGE = re.compile(r"[0-9a-f]{64}\.jpg")
WHERE = ("offset", "frame", "seconds", "across_cut")
"""The keys of a neighbour's distance from its anchor, which would bias reviewers."""

Decided = Annotated[int | None, Query(ge=1, lt=1 << 31)]


class PrivateLink(BaseModel):
    """The part of a private link after #."""

    token: str = Field(max_length=200)


class Withdrawal(BaseModel):
    """A decision to take back."""

    key: str = Field(min_length=8, max_length=64)


class QuizAnswer(BaseModel):
    """An answer to a question of an entry quiz."""

    item: int = Field(ge=1, lt=1 << 31)
    answer: dict[str, Any]


class Newcomer(BaseModel):
    """A reviewer to add."""

    name: str


class Pause(BaseModel):
    """Why a reviewer is paused; empty lets them go on."""

    why: str = Field(max_length=200)


def build_app(
    folder: SetFolder,
    database: Database,
    hosts: Sequence[str],
    entrance: Access | None = None,
    live: LiveStudy | None = None,
) -> FastAPI:
    """The app for one set; `hosts`: the host names that requests may use.

    `live`: the label study of the set, which adds its items itself.
    """
    rules = read_rules(folder)
    app = FastAPI(title="steadyeye review", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.database, app.state.folder, app.state.rules = database, folder, rules
    app.state.background = BackgroundMeasurement(database, folder, rules.plan)
    app.state.access, app.state.pictures = entrance or Access(), Pictures(folder.root)
    app.state.study = live
    if live is None:
        with database.writing() as connection:
            queue.add_set_items(connection, folder, rules.plan)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    app.add_middleware(guard_app, secure=app.state.access.secure)
    add_refusals(app)
    app.router.route_class = CheckedRoute
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    _add_sessions(app)
    _add_pages(app)
    _add_decisions(app)
    _add_administration(app)
    app.include_router(router)
    if live is not None:
        app.include_router(study_router)
    return app


def _add_sessions(app: FastAPI) -> None:
    @app.get("/r")
    def show_entry(request: Request) -> Response:
        values = {"set": request.app.state.folder.name, "reviewer": None}
        page = TEMPLATES.get_template("enter.html").render(values)
        return HTMLResponse(page, headers={"Cache-Control": "no-store"})

    @app.post("/sign-in", dependencies=[Depends(access.require_own_origin)])
    def sign_in(body: PrivateLink, request: Request, response: Response) -> Mapping[str, str]:
        reviewer, session = access.sign_in(request, body.token, response)
        return {"name": reviewer.name, "csrf": access.make_csrf_word(session)}

    @app.post("/sign-out", dependencies=[Depends(access.require_own_page)])
    def sign_out(request: Request, response: Response, reviewer: Who) -> Mapping[str, str]:
        access.sign_out(request, response)
        return {"name": reviewer.name}


def _add_pages(app: FastAPI) -> None:
    @app.get("/")
    @app.get("/index.json")
    def show_index(request: Request, reviewer: Who) -> Response:
        with get_database(request).reading() as connection:
            content = _describe_progress(connection, request, reviewer)
        return show_page(request, "index.html", reviewer, content)

    @app.get("/stages/{name}")
    def show_stage(name: str, request: Request, reviewer: Who, change: Decided = None) -> Response:
        rules, key = get_rules(request), name.removesuffix(".json")
        if key not in rules.plan.votes:
            raise HTTPException(404, f"this review has no stage '{key}'")
        content = get_database(request).write(
            lambda connection: _serve_next(connection, request, reviewer, key, change)
        )
        if not name.endswith(".json"):
            content = {**content, "guidelines": _show_guidelines(request, key)}
        stage = STAGES[key]
        head = {"stage": key, "title": stage.title, "question": stage.question}
        classes = {"classes": list_labels(key, rules.classes)}
        return show_page(request, "stage.html", reviewer, {**head, **content, **classes})

    @app.get("/assignments/{number}/nearby.json")
    def show_nearby(number: int, request: Request, reviewer: Who) -> JSONResponse:
        with get_database(request).reading() as connection:
            nearby = sequences.find_nearby(connection, reviewer.id, number)
        if nearby is None:
            raise HTTPException(404, "no such frame of a video was assigned to you")
        return JSONResponse(dict(nearby), headers={"Cache-Control": "no-store"})

    @app.get("/images/{name}")
    def send_image(name: str, request: Request, reviewer: Who) -> Response:
        folder: SetFolder = request.app.state.folder
        live = get_study(request)
        known = IMAGE.fullmatch(name) and (
            live.items.has_image(name) if live else name in folder.images
        )
        if not known:
            raise HTTPException(404, "this set has no such image")
        headers = {"Cache-Control": "private, max-age=31536000, immutable"}
        content = request.app.state.pictures.read(name)
        return Response(content, media_type="image/jpeg", headers=headers)


def _describe_progress(
    connection: Connection, request: Request, reviewer: Reviewer
) -> Mapping[str, Any]:
    """The stages of a review, the text if no item is open, and the next step."""
    plan = get_rules(request).plan
    stages = status.count_progress(connection, plan, reviewer)
    step = status.suggest_next(read_item_counts(connection), request.app.state.folder, plan)
    live = get_study(request)
    ended = live.explain_rest(connection) if live else ""
    if ended:
        stages = [{**stage, "left": 0} for stage in stages]
    rest = ended or status.describe_rest(stages, step)
    # the command names folders of the server
    return {"stages": stages, "rest": rest, "next": step if reviewer.admin else None}


def _add_decisions(app: FastAPI) -> None:
    @app.post("/decisions", dependencies=[Depends(access.require_own_page)])
    def decide(body: Submission, request: Request, reviewer: Who) -> JSONResponse:
        def work(connection: Connection) -> Mapping[str, Any]:
            decision = decisions.decide(connection, get_rules(request), reviewer, body)
            return _confirm(connection, request, decision)

        return JSONResponse(get_database(request).write(work))

    @app.post("/stages/{name}/quiz", dependencies=[Depends(access.require_own_page)])
    def answer_quiz(name: str, body: QuizAnswer, request: Request, reviewer: Who) -> JSONResponse:
        if name not in get_rules(request).plan.votes:
            raise HTTPException(404, f"this review has no stage '{name}'")

        def work(connection: Connection) -> Mapping[str, Any]:
            reply = body.item, body.answer
            rules, lacks = get_rules(request), request.app.state.pictures.lacks
            result = quiz.answer_question(connection, rules, reviewer, name, reply, lacks)
            return asdict(result)

        return JSONResponse(get_database(request).write(work))

    @app.post("/decisions/{decision}/undo", dependencies=[Depends(access.require_own_page)])
    def undo(decision: int, body: Withdrawal, request: Request, reviewer: Who) -> JSONResponse:
        def work(connection: Connection) -> Mapping[str, Any]:
            rules = get_rules(request)
            if not decisions.has_decision(connection, decision):
                raise HTTPException(404, f"there is no decision {decision}")
            undone = decisions.undo(connection, rules, reviewer, decision, body.key)
            return _confirm(connection, request, undone)

        return JSONResponse(get_database(request).write(work))


def _add_administration(app: FastAPI) -> None:
    @app.get("/dashboard")
    @app.get("/dashboard.json")
    def show_dashboard(request: Request, reviewer: Admin) -> Response:
        with get_database(request).reading() as connection:
            plan = get_rules(request).plan
            measurement = request.app.state.background.read(connection)
            summary = status.summarise(connection, request.app.state.folder, plan, measurement)
        faults = {"pictures": request.app.state.pictures.list_faults()}
        return show_page(request, "dashboard.html", reviewer, {**summary, **faults})

    @app.post("/reviewers", dependencies=[Depends(access.require_own_page)])
    def add_reviewer(body: Newcomer, request: Request, reviewer: Admin) -> JSONResponse:
        joint = get_rules(request).plan.joint
        with get_database(request).writing() as connection:
            key = access.get_access(request).key
            token = reviewers.add_reviewer(connection, body.name, joint=joint, key=key)
        return JSONResponse({"name": body.name, "link": access.make_link(request, token)})

    @app.post("/reviewers/{number}/link", dependencies=[Depends(access.require_own_page)])
    def renew_link(number: int, request: Request, reviewer: Admin) -> JSONResponse:
        with get_database(request).writing() as connection:
            name = _find_name(connection, number)
            plan, key = get_rules(request).plan, access.get_access(request).key
            token = members.renew_link(connection, plan, name, key)
        return JSONResponse({"name": name, "link": access.make_link(request, token)})

    @app.post("/reviewers/{number}/revoke", dependencies=[Depends(access.require_own_page)])
    def revoke_link(number: int, request: Request, reviewer: Admin) -> JSONResponse:
        if number == reviewer.id:
            raise UsageError("your own link is renewed with `steadyeye review set/ --renew admin`")
        with get_database(request).writing() as connection:
            name = _find_name(connection, number)
            members.end_link(connection, get_rules(request).plan, name)
        return JSONResponse({"name": name})

    @app.post("/reviewers/{number}/pause", dependencies=[Depends(access.require_own_page)])
    def pause_reviewer(number: int, body: Pause, request: Request, reviewer: Admin) -> JSONResponse:
        if body.why and number == reviewer.id:
            raise UsageError("your own link is not paused; close the page instead")
        with get_database(request).writing() as connection:
            _find_name(connection, number)
            reviewers.pause_reviewer(connection, number, body.why)
        return JSONResponse({"reviewer": number, "paused": body.why})


def _find_name(connection: Connection, number: int) -> str:
    """The name of the reviewer with an id; 404 where there is none."""
    names = {person.id: person.name for person in reviewers.list_reviewers(connection)}
    if number not in names:
        raise HTTPException(404, f"there is no reviewer {number}")
    return names[number]


def _serve_next(
    connection: Connection,
    request: Request,
    reviewer: Reviewer,
    stage: str,
    change: int | None = None,
) -> Mapping[str, Any]:
    """The next items of a reviewer in a stage, and why they are paused; the quiz comes first.

    `change`: one of their decisions, whose item comes first if the decision stands.
    """
    plan = get_rules(request).plan
    hidden = () if plan.show_offset else WHERE
    lacks = request.app.state.pictures.lacks
    question = quiz.find_question(connection, plan, reviewer, stage, lacks)
    if question is not None:
        return {"next": [], "paused": "", "quiz": _show_item(asdict(question), stage, hidden)}
    again = queue.serve_again(connection, reviewer, stage, change) if change else None
    live = get_study(request)
    if live and live.explain_rest(connection):
        items = [_show_item(asdict(again), stage, hidden)] if again else []
        return {"next": items, "paused": reviewer.paused, "quiz": None}
    served = queue.serve_items(connection, plan, reviewer, stage, lacks=lacks)
    content = [again, *served] if again else served
    items = [_show_item(asdict(item), stage, hidden) for item in content]
    return {"next": items, "paused": reviewer.paused, "quiz": None}


def _show_guidelines(request: Request, stage: str) -> Mapping[str, str]:
    """The guidelines of a stage for its page; the version shown is recorded."""
    read = guidelines.read_guidelines(request.app.state.folder.root, stage)
    get_database(request).write(lambda connection: guidelines.note_shown(connection, read))
    return {"version": read.version, "html": render_guidelines(read.text)}


def _show_item(content: dict[str, Any], stage: str, hidden: Sequence[str]) -> Mapping[str, Any]:
    """The content of an item for its page; `hidden`: keys left out of a pair."""
    if stage in ("pairs", "joint"):
        facts = content["payload"].items()
        content["payload"] = {name: fact for name, fact in facts if name not in hidden}
    return content


def _confirm(connection: Connection, request: Request, decision: Decision) -> Mapping[str, Any]:
    """The id of a decision, and the next items of its stage."""
    following = _serve_next(connection, request, decision.reviewer, decision.stage)
    return {"decision": decision.id, **following}
