"""A page as HTML, or as JSON where its address ends in `.json`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, FileSystemLoader

from steadyeye.review import access
from steadyeye.review.people import Reviewer

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).resolve().parent / "templates"), autoescape=True
)


def page(
    request: Request, template: str, reviewer: Reviewer, content: Mapping[str, Any]
) -> Response:
    """What a page shows; nothing of it may be kept by a cache."""
    kept = {"Cache-Control": "no-store"}
    if request.url.path.endswith(".json"):
        return JSONResponse(dict(content), headers=kept)
    folder = request.app.state.folder
    shown = {
        **content,
        "set": folder.name,
        "classes": folder.classes.names if folder.classes else (),
        "reviewer": reviewer,
        "csrf": access.word(request.cookies.get(access.COOKIE, "")),
    }
    return HTMLResponse(TEMPLATES.get_template(template).render(shown), headers=kept)
