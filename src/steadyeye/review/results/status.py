"""Where a review stands: its stages, its people, and the numbers of the papers' Table 1."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.bulk import audit_workflow, skip_pairs
from steadyeye.review.db.schema import assignments, items
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import STAGES
from steadyeye.review.results.counting import Counted, count_stages, reviewed_images
from steadyeye.review.results.verdicts import box_verdicts
from steadyeye.review.workflow import quality, queue


@dataclass(frozen=True)
class CountedLine:
    """A line of the table. `reviewed`: None where only what changed is counted.

    `low`, `high`: the 95 % interval of the share accepted, Clopper–Pearson over what was reviewed;
    None where nothing was.
    """

    item: str
    reviewed: int | None
    accepted: int
    low: float | None = None
    high: float | None = None


def table_one(connection: Connection, folder: SetFolder, plan: ReviewPlan) -> Sequence[CountedLine]:
    """The table of a set, over what is decided so far.

    "Do Image Classifiers Generalize Across Time?", Table 1. `anchor labels updated`: accepted
    anchors whose labels the review changed. Gold questions, pairs of rejected anchors and those
    across a scene cut are not counted; see `counting`, which the dashboard reads too.
    """
    stages = {each.stage: each for each in count_stages(connection, folder, plan)}
    if folder.content.get("kind") == "boxes":
        return _of_boxes(connection, folder, plan, stages.get("classification"))
    lines = []
    if "anchors" in stages:
        anchors = stages["anchors"]
        lines += [
            _line("anchor frames", anchors.reviewed, anchors.accepted),
            CountedLine("anchor labels updated", None, anchors.updated or 0),
        ]
    if "pairs" in stages:
        lines.append(_line("frame pairs", stages["pairs"].reviewed, stages["pairs"].accepted))
    return lines


def _of_boxes(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, objects: Counted | None
) -> Sequence[CountedLine]:
    found = box_verdicts(connection, folder, plan)
    images = [found[image] for image in reviewed_images(connection, plan, found)]
    lines = [_line("suggested boxes", objects.reviewed, objects.accepted)] if objects else []
    lines.append(_line("images", len(images), sum(each.accepted for each in images)))
    return [*lines, CountedLine("boxes", None, sum(len(each.boxes) for each in images))]


def _line(item: str, reviewed: int, accepted: int) -> CountedLine:
    interval = clopper_pearson(accepted, reviewed) if reviewed else (None, None)
    return CountedLine(item, reviewed, accepted, *interval)


def progress(
    connection: Connection, plan: ReviewPlan, reviewer: Reviewer | None = None
) -> Sequence[Mapping[str, Any]]:
    """Each stage with how many of its items are waiting, open and done, gold questions left out.

    Of a reviewer: `mine`, what they answered, and `left`, what waits for them.
    """
    # gold questions are asked of everybody and are never done
    rows = connection.execute(
        select(items.c.stage, items.c.state, func.count())
        .where(items.c.gold.is_(None))
        .group_by(items.c.stage, items.c.state)
    )
    counts = {(stage, state): count for stage, state, count in rows}
    mine: dict[str, int] = {}
    left: dict[str, int] = {}
    if reviewer:
        left = {name: queue.count_left(connection, plan, reviewer, name) for name in plan.votes}
        answered = connection.execute(
            select(items.c.stage, func.count())
            .join(assignments, assignments.c.item == items.c.id)
            .where(assignments.c.reviewer == reviewer.id, assignments.c.answered)
            .group_by(items.c.stage)
        )
        mine = {row[0]: row[1] for row in answered}
    return [
        {
            "stage": name,
            "title": STAGES[name].title,
            "votes": votes,
            **{state: counts.get((name, state), 0) for state in ("waiting", "open", "done")},
            **({"mine": mine.get(name, 0), "left": left[name]} if reviewer else {}),
        }
        for name, votes in plan.votes.items()
    ]


def status(connection: Connection, folder: SetFolder, plan: ReviewPlan) -> Mapping[str, Any]:
    """Everything the dashboard and `steadyeye review-status` show."""
    agreements = [quality.agreement(connection, name) for name in plan.votes]
    return {
        "set": folder.name,
        "stages": progress(connection, plan),
        "reviewers": [asdict(pace) for pace in quality.paces(connection)],
        "agreement": [
            {
                "stage": each.stage,
                "alpha": each.alpha,
                "n": each.n,
                "kappa": [
                    {"reviewers": list(pair), "kappa": value, "n": n}
                    for pair, (value, n) in each.kappa.items()
                ],
            }
            for each in agreements
        ],
        "table": table(connection, folder, plan),
        "table_one": [asdict(line) for line in table_one(connection, folder, plan)],
        **(_describe_spared(connection) if plan.shortcut else {}),
    }


def _describe_spared(connection: Connection) -> Mapping[str, Any]:
    told = {"spared": skip_pairs.counts(connection), "holds": audit_workflow.holds(connection)}
    return {"shortcut": {**told, "audits": audit_workflow.list_audits(connection)}}


def table(
    connection: Connection, folder: SetFolder, plan: ReviewPlan
) -> Sequence[Mapping[str, Any]]:
    """Reviewed, accepted, updated and why not, of each stage; what counts: `counting`."""
    return [
        {
            "stage": each.stage,
            "reviewed": each.reviewed,
            "accepted": each.accepted,
            "gold": each.gold,
            "reasons": each.reasons,
            **({} if each.updated is None else {"updated": each.updated}),
        }
        for each in count_stages(connection, folder, plan)
    ]
