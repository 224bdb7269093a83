"""Guidelines on the page: Markdown as HTML, and the pictures of a set's guidelines."""

from pathlib import PurePosixPath

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, Response
from markdown_it import MarkdownIt
from markupsafe import Markup

from steadyeye.review.protocol.guidelines import PICTURES, find_file
from steadyeye.review.web.pages import Who

router = APIRouter()
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
