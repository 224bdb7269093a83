"""A report as one self-contained HTML file, which opens offline and makes no requests."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from steadyeye.core.format import isolate
from steadyeye.core.report_types import Exhibit, Figure, Picture, Section
from steadyeye.core.result_lookup import among, limit
from steadyeye.core.storage.files import cache_home
from steadyeye.report.comparison.metric_wording import name_metric
from steadyeye.report.render.document import (
    SENTENCES,
    Document,
    interval_of,
    numbers,
    value_of,
)
from steadyeye.report.render.sprites import Films, data_uri, embed_json, reels
from steadyeye.report.render.vega import read_vega

INTERVAL = r"\(?[\d.,]+–[\d.,]+(?:\u202f[%\w]+)?\)?|\(≥? ?[\d.,]+(?: %)?\)"
"""An interval in a cell, `(27.0–73.0 %)`, or another text in brackets, `(≥ 3)`."""

Pictures = Callable[[str, Picture], bytes | None]
"""`(data, picture) -> JPEG bytes`, or None if it is not stored."""


def render_html(
    document: Document, picture: Pictures, film: Films = lambda data, film: None
) -> str:
    """The page. Charts are Vega, embedded once; pictures are data URIs; same input, same bytes."""
    environment = open_templates()
    environment.filters["anchor"] = _anchor
    environment.filters["breakable"] = _breakable
    environment.globals |= {
        "among": among,
        "interval_of": interval_of,
        "limit": limit,
        "name_metric": name_metric,
        "numbers": numbers,
        "sentences": SENTENCES,
        "value_of": value_of,
    }
    charts = any(section.figures for section in document.sections)
    page: str = environment.get_template("report.html").render(
        document=document,
        lead=_lead(document, picture),
        picture=lambda exhibit, shot: _data_uri(picture(exhibit.data, shot)),
        specification=lambda figure: embed_json(_insert_pictures(figure, picture)),
        reels=reels(document, film),
        record=partial(json.dumps, indent=1, ensure_ascii=False),
        style=Markup(read_static("report.css") + read_static("viewer.css")),  # noqa: S704 - our own files
        script=Markup(read_static("report.js")),  # noqa: S704
        viewer=Markup(read_static("viewer.js")),  # noqa: S704
        vega=Markup(read_vega()) if charts else None,  # noqa: S704
    )
    return page


@dataclass(frozen=True)
class _Lead:
    """The pictures on the first screen, each with its data URI."""

    section: Section
    exhibit: Exhibit
    shots: tuple[tuple[Picture, str], ...]


def _lead(document: Document, picture: Pictures) -> _Lead | None:
    """The first lead whose pictures are stored."""
    for section in document.sections:
        exhibit = section.lead
        if exhibit is None:
            continue
        encoded = [(shot, _data_uri(picture(exhibit.data, shot))) for shot in exhibit.pictures]
        shots = tuple((shot, uri) for shot, uri in encoded if uri)
        if len(shots) == len(encoded):
            return _Lead(section, exhibit, shots)
    return None


def _data_uri(jpeg: bytes | None) -> str | None:
    return None if jpeg is None else data_uri(jpeg)


def _insert_pictures(figure: Figure, picture: Pictures) -> Mapping[str, Any]:
    """The chart with the stored thumbnails."""
    if not figure.thumbnails:
        return figure.spec
    encoded = ((shot.sample, _data_uri(picture(figure.data, shot))) for shot in figure.thumbnails)
    rows = [{"sample": sample, "image": uri} for sample, uri in encoded if uri]
    datasets = {**figure.spec.get("datasets", {}), "thumbnails": rows}
    return {**figure.spec, "datasets": datasets}


def _typeset(value: object) -> object:
    """A text as it is to stand on the page; anything else as it is.

    A number and its percent sign stay in one line, and names from right to left by themselves.
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return isolate(re.sub(r"(?<=\d) (?=%)", "\u202f", value))


def _breakable(text: str) -> Markup:
    """A cell that may break after each underscore and before a bracket, but not in an interval."""
    cell = Markup("")
    for part, interval in re.findall(rf"(.*?)({INTERVAL}|$)", text, re.DOTALL):
        cell += Markup("<wbr>").join(escape(piece) for piece in re.split(r"(?<=_)|(?=[(\[])", part))
        cell += Markup('<span class="ends">{}</span>').format(interval) if interval else ""
    return cell


def _anchor(text: str) -> str:
    """A fragment identifier for a title."""
    plain = "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:4]}"


HERE = Path(__file__).resolve().parent


def open_templates() -> Environment:
    """The templates of this package: values are escaped, and a missing value is an error.

    The compiled templates are stored in the cache's folder, because compilation takes a tenth of
    the time of a small report; if the folder cannot be written, they are compiled each time.
    """
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_typeset,
    )
    # Jinja's own key is the text of a template alone, not what else its code depends on
    folder = cache_home() / "templates" / f"jinja-{jinja2.__version__}-2"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return environment
    environment.bytecode_cache = FileSystemBytecodeCache(str(folder), "%s.cache")
    return environment


def read_static(name: str) -> str:
    """The text of one of our scripts or style sheets."""
    return (HERE / "static" / name).read_text(encoding="utf-8")
