"""The output of mining: candidates in COCO's form for a review and other tools, and a report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from steadyeye.core import plugins
from steadyeye.core.report_types import Section
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import Place, encode
from steadyeye.core.types import Evaluated, Image
from steadyeye.data.annotations.review_candidates import Candidate, Candidates
from steadyeye.data.classes.class_lists import classes_of_names
from steadyeye.explain.mining.causes import MISTAKES
from steadyeye.explain.mining.crops import sample
from steadyeye.explain.mining.error_rates import share_results, shares, summarize
from steadyeye.explain.mining.run import Mined, RankedMistake
from steadyeye.report import build
from steadyeye.report.render.document import Document
from steadyeye.runner.collect import record

Keep = Callable[[Callable[[], Image]], str]
"""Stores a picture and returns its path among the pictures."""


def coco(mined: Mined, keep: Keep) -> dict[str, Any]:
    """The candidates as COCO's JSON of instances, by rank.

    `file_name`: path of the stored picture, or the sample's id if there is none. An annotation's
    `category_id` is the detector's class; beside COCO's keys it has `score`, `cause`, `model` (the
    most confident), `models`, `truth` (the class of the overlapping box, null if there is none),
    `iou`, `times`, `novelty`, and, unless the labels do not cover its class, `annotated`: the true
    class under the detector's name for it, if it has one.
    """
    # the classes of all detectors, numbered from 1 in the order they come
    classes = dict.fromkeys(name for table in mined.tables for name in table.model_classes)
    names = {name: number for number, name in enumerate(classes, start=1)}
    settings = mined.settings
    images: dict[str, dict[str, Any]] = {}
    annotations = []
    for number, mistake in enumerate(mined.ranked, start=1):
        image = _image(mined, mistake, keep)
        image = images.setdefault(image["file_name"], {"id": len(images) + 1, **image})
        annotations.append(
            _annotation(number, image["id"], names[mistake.candidate.predicted], mistake)
        )
    return {
        "info": {
            "description": "confident mistakes of detectors",
            "score_above": settings.score,
            "causes": list(settings.causes),
            "rank": settings.rank,
            "limit_a_class": settings.limit,
        },
        "images": list(images.values()),
        "categories": [{"id": id_, "name": name} for name, id_ in names.items()],
        "annotations": annotations,
    }


def build_candidates(mined: Mined, content: Mapping[str, Any]) -> Candidates:
    """The candidates of `coco` for a review; a picture has the name of its sample."""
    names = {item["id"]: item["name"] for item in content["categories"]}
    files = dict(zip((item["id"] for item in content["images"]), own_names(content), strict=True))
    boxes = tuple(
        Candidate(
            str(item["id"]),
            files[item["image_id"]],
            mistake.box,
            names[item["category_id"]],
            item["score"],
            (item["annotated"] or "") if "annotated" in item else None,
        )
        for item, mistake in zip(content["annotations"], mined.ranked, strict=True)
    )
    classes = classes_of_names(names.values())
    return Candidates(classes, tuple(names), tuple(files.values()), boxes)


def own_names(content: Mapping[str, Any]) -> list[str]:
    """The name of each image in a review: its sample, in a folder of its video if it has one.

    A review takes images in one folder as frames of one video, so the data set is no folder: with
    several data sets its name is a prefix, with a plus.
    """
    images = content["images"]
    several = len({image["data"] for image in images}) > 1
    plain = [str(image["sample"]) for image in images]
    filmed = [
        f"{image['video']}/{PurePosixPath(name).name}" if "video" in image else name
        for image, name in zip(images, plain, strict=True)
    ]
    if several:
        plain, filmed = (
            [f"{image['data']}+{name}" for image, name in zip(images, names, strict=True)]
            for names in (plain, filmed)
        )
    # a source may name its frames otherwise
    return filmed if len(set(filmed)) == len(filmed) else plain


def origin(content: Mapping[str, Any]) -> Mapping[str, str]:
    """The name and fingerprint of candidates, which their set records."""
    return {"name": "candidates.json", "fingerprint": fingerprint(encode(content))}


def document(mined: Mined, runs: Sequence[Place], commands: Sequence[str]) -> Document:
    """The report on the confident mistakes of the detectors.

    `commands`: after those of the runs.
    """
    counted = [shares(*pair) for pair in zip(mined.tables, mined.judged, strict=True)]
    evaluated = [
        Evaluated(table, share_results(of, len(table.model_classes)))
        for table, of in zip(mined.tables, counted, strict=True)
    ]
    several = len({table.data for table in mined.tables}) > 1
    records = {str(run): record(run) for run in runs}
    return Document(
        title="Confident mistakes",
        headline=tuple(
            summarize(table, of, mined.settings.score, several)
            for table, of in zip(mined.tables, counted, strict=True)
        ),
        evaluated=evaluated,
        sections=_sections(evaluated, mined.settings.score),
        provenance=records,
        commands=(*(build.command(content, run) for run, content in records.items()), *commands),
    )


def _sections(evaluated: Sequence[Evaluated], score: float) -> tuple[Section, ...]:
    """The sections of each data set."""
    analysis = plugins.load("analyses", "confident_mistakes")
    by_data: dict[str, list[Evaluated]] = {}
    for model in evaluated:
        by_data.setdefault(model.predictions.data, []).append(model)
    parts = [(data, analysis(models, score=score)) for data, models in by_data.items()]
    several = len(by_data) > 1
    return tuple(
        replace(section, title=f"{section.title} · {data}") if several else section
        for data, section in parts
        if section is not None
    )


def _image(mined: Mined, mistake: RankedMistake, keep: Keep) -> dict[str, Any]:
    candidate = mistake.candidate
    table, name = mined.tables[candidate.table], candidate.sample
    if mined.pictured:
        name = keep(sample(table, mined.sources[table.fingerprint], candidate.row).image)
    image: dict[str, Any] = {"file_name": name}
    if mistake.size is not None:
        image["width"], image["height"] = mistake.size
    image |= {"sample": candidate.sample, "data": table.data}
    if "video" in table.tags:
        image["video"] = str(table.tags["video"][candidate.row])
    return image


def _annotation(number: int, image: int, category: int, mistake: RankedMistake) -> dict[str, Any]:
    candidate = mistake.candidate
    x0, y0, x1, y1 = mistake.box
    return {
        "id": number,
        "image_id": image,
        "category_id": category,
        "bbox": [x0, y0, x1 - x0, y1 - y0],
        "area": (x1 - x0) * (y1 - y0),
        "iscrowd": 0,
        "score": candidate.score,
        "cause": candidate.cause,
        "model": candidate.models[0],
        "models": list(candidate.models),
        "truth": candidate.truth or None,
        "iou": round(candidate.iou, 4),
        "times": candidate.times,
        "novelty": mistake.novelty,
        **({} if candidate.cause == "unverified" else {"annotated": candidate.annotated or None}),
    }


def counts(mined: Mined) -> list[tuple[str, ...]]:
    """Rows of a table with one column per model: its confident detections by cause."""
    tables = mined.tables
    every = [shares(*pair) for pair in zip(tables, mined.judged, strict=True)]
    several = len({table.data for table in tables}) > 1
    names = [f"{part.model} on {part.data}" if several else part.model for part in tables]
    wrong = [[round((share.value or 0) * share.n) for share in of.causes] for of in every]
    rows: list[tuple[str, Sequence[int]]] = [
        ("confident detections", [of.confident for of in every]),
        ("right", [of.n_judged - sum(lost) for of, lost in zip(every, wrong, strict=True)]),
        *(
            (cause.replace("_", " "), [lost[i] for lost in wrong])
            for i, cause in enumerate(MISTAKES)
        ),
        ("unverified", [of.unverified for of in every]),
        ("in a crowd of its class", [of.excused for of in every]),
    ]
    body = [(title, *(f"{n:,}" for n in numbers)) for title, numbers in rows]
    return [(f"score above {mined.settings.score:g}", *names), *body]
