"""The page of a label study: its current result, and its distance from a decision."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from steadyeye.metrics.label_studies.difference_study import DifferenceStudy
from steadyeye.review.studies.class_words import list_class_words
from steadyeye.review.studies.difference_summary import describe_difference
from steadyeye.review.studies.live_study import LiveStudy
from steadyeye.review.studies.study_summary import describe_study
from steadyeye.review.web.pages import Who, get_database, get_rules, get_study, show_page

router = APIRouter()


@router.get("/study")
@router.get("/study.json")
def show_study(request: Request, reviewer: Who) -> Response:
    """The page of the study; as JSON with every number."""
    live = get_study(request)
    assert isinstance(live, LiveStudy), "the routes are those of a study"
    with get_database(request).reading() as connection:
        two = isinstance(live.study, DifferenceStudy)
        content = (describe_difference if two else describe_study)(connection, live)
    more = {} if request.url.path.endswith(".json") else {"content": content}
    return show_page(request, "study.html", reviewer, {**content, **more})


@router.get("/stages/labels/words.json")
def list_words(request: Request, reviewer: Who) -> JSONResponse:
    """The words by which classes are found, as indices of the classes of the stage."""
    headers = {"Cache-Control": "private, max-age=3600"}
    return JSONResponse({"words": _list_words(tuple(get_rules(request).classes))}, headers=headers)


@lru_cache(maxsize=4)
def _list_words(names: Sequence[str]) -> Mapping[str, Any]:
    return list_class_words(names)
