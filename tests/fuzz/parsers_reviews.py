"""A set under review, and the answers of other tools."""

import json
import shutil
from functools import partial

from fuzzing import FEW, Parser
from review_exports import review_boxes, review_frames

from steadyeye.core.storage import sha256sums
from steadyeye.data.annotations import review_set
from steadyeye.review import database
from steadyeye.review.interchange import answers, formats
from steadyeye.review.protocol.guidelines import read_guidelines
from steadyeye.review.protocol.reviewers import read_key
from steadyeye.review.protocol.stages import read_plan
from steadyeye.review.results.recount import check_counts
from steadyeye.review.results.status import summarise
from steadyeye.review.web.access import Access
from steadyeye.review.web.app import build_app
from steadyeye.review.workflow import queue
from steadyeye.review.workflow.decisions import read_rules

KINDS = {"frames": review_frames, "boxes": review_boxes}
STAGES = {"frames": "anchors", "boxes": "classification"}
ANSWERS = {"label_studio": "answers.json", "cvat": "answers.xml"}
EXPORTS = {"frames": ("set", "pmsets"), "boxes": ("coco",)}
GOLD = {"every": 5, "least": 0.8, "minimum": 2, "window": 4}


def build_review(kind, folder):
    """A set that people reviewed and its database; without sums, as every change is noticed."""
    review = KINDS[kind](folder)
    review.db.engine.dispose()
    root = folder / "set"
    (root / sha256sums.NAME).unlink()
    content = json.loads((root / "set.json").read_text())
    content["review"] = {"stages": dict(review.plan.votes), "gold": GOLD, "minutes": 5, "seed": 1}
    (root / "set.json").write_text(json.dumps(content))
    (root / "guidelines").mkdir()
    (root / "guidelines" / "anchors.md").write_text("# Anchors\n\n![ä](a.png)\n", encoding="utf-8")
    read_key(root)


def serve_review(folder):
    """Opens a review as the server does."""
    root = folder / "set"
    content = review_set.read(root)
    data = database.connect(database.default_url(root))
    try:
        with data.name_failures():
            build_app(content, data, ["localhost"], Access(None, key=read_key(root)))
        for stage in read_plan(content.content).votes:
            read_guidelines(root, stage)
    finally:
        data.engine.dispose()


def export_review(kind, folder):
    """The status of a review, and its exports."""
    root = folder / "set"
    content = review_set.read(root)
    plan = read_plan(content.content)
    data = database.connect(database.default_url(root))
    try:
        with data.name_failures(), data.reading() as connection:
            summarise(connection, content, plan)
            check_counts(connection, plan)
            for name in (*EXPORTS[kind], *formats.TOOLS):
                out = folder / f"out-{name}"
                formats.export_formats(connection, content, plan, out, names=[name], partial=True)
    finally:
        data.engine.dispose()


def open_database(kind, folder):
    """Serves and exports a review whose database was damaged."""
    serve_review(folder)
    export_review(kind, folder)


def build_answers(kind, folder):
    """A reviewed set beside what each tool would answer to one of its stages."""
    build_review(kind, folder)
    export_review(kind, folder)
    paths = {
        "label_studio": f"{STAGES[kind]}.results.json",
        "cvat": f"{STAGES[kind]}/results/r0.xml",
    }
    for tool, path in paths.items():
        (folder / f"out-{tool}" / tool / path).rename(folder / ANSWERS[tool])
    for out in folder.glob("out-*"):
        shutil.rmtree(out)


def import_answers(tool, folder):
    """Imports what another tool answered into a review that nobody began."""
    root = folder / "set"
    (root / "review.sqlite").unlink()
    content = review_set.read(root)
    annotations = formats.find_reader(tool)(content, folder / ANSWERS[tool], "Ann")
    rules = read_rules(content)
    data = database.connect(database.default_url(root))
    try:
        with data.writing() as connection:
            queue.add_set_items(connection, content, rules.plan)
            answers.import_annotations(connection, rules, annotations)
    finally:
        data.engine.dispose()


def parse_import(tool, kind, form):
    """An import of the answers of one stage; stages before it are not decided then."""
    name, build = f"import-{tool}-{STAGES[kind]}", partial(build_answers, kind)
    return Parser(name, build, partial(import_answers, tool), {ANSWERS[tool]: form}, cases=FEW)


PARSERS = [
    Parser(
        "review-of-frames-served",
        partial(build_review, "frames"),
        serve_review,
        {
            "set/set.json": "json",
            "set/frames.parquet": "bytes",
            "set/review.key": "lines",
            "set/guidelines/anchors.md": "text",
        },
    ),
    Parser(
        "review-of-boxes-served",
        partial(build_review, "boxes"),
        serve_review,
        {"set/set.json": "json", "set/boxes.parquet": "bytes"},
    ),
    Parser(
        "review-of-frames-exported",
        partial(build_review, "frames"),
        partial(export_review, "frames"),
        {"set/set.json": "json", "set/images/*/*.jpg": "bytes"},
        cases=FEW,
    ),
    Parser(
        "review-of-boxes-exported",
        partial(build_review, "boxes"),
        partial(export_review, "boxes"),
        {"set/set.json": "json", "set/images/*/*.jpg": "bytes"},
        cases=FEW,
    ),
    *(
        Parser(
            f"review-database-of-{kind}",
            partial(build_review, kind),
            partial(open_database, kind),
            {"set/review.sqlite": "bytes"},
            cases=FEW,
        )
        for kind in KINDS
    ),
    *(
        parse_import(tool, kind, form)
        for tool, form in (("label_studio", "json"), ("cvat", "text"))
        for kind in KINDS
    ),
]
