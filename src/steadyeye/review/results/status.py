"""The status of a review: its stages, its reviewers, and the numbers of the papers' Table 1.

Only this module counts reviewed items, for the dashboard, the terminal and every export. An item is
**reviewed** if the standing votes settle it:

- A *gold question* is not: its answer was known before. It judges reviewers, and holds in the set.
- A *moot* one is not: a pair of an anchor that is not accepted, boxes of an image whose objects are
all rejected. Earlier decisions on it have no effect, and nobody is asked about it. - A *spared*
pair is not: the twin of one that was asked, and what was accepted in bulk. - A pair that somebody
doubts is reviewed once its joint verification is settled, which decides. - A vote that was taken
back, or of an answer that was changed, does not stand.

These are also left out of the progress of a stage, so that the stage ends: an item is *done* once
it has all its votes, *open*, or *waiting* for the decision on its anchor or objects. An item that
is rejected for several reasons counts for each of them.

The counts are stored with the decisions (`review/protocol/counts.py`); `results/recount.py` counts
the votes themselves by this definition, and `steadyeye review-status --check` compares the two.
"""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, select

from steadyeye.core.format import number_of
from steadyeye.core.stats.intervals import Interval
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.bulk import audit
from steadyeye.review.database import items
from steadyeye.review.protocol.counts import (
    SPARED,
    ItemCount,
    read_item_counts,
    read_reviewer_counts,
)
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import STAGES, ReviewPlan
from steadyeye.review.results import history
from steadyeye.review.results.agreement import (
    Agreement,
    Measurement,
    bound_share,
    list_videos,
    measure,
)
from steadyeye.review.results.recount import list_reviewed_images
from steadyeye.review.results.verdicts import judge_images
from steadyeye.review.workflow import quality
from steadyeye.review.workflow.assignments import count_left

Counts = Sequence[ItemCount]
LATEST = 20  # comments that the status lists; the exports hold all


@dataclass(frozen=True)
class CountedLine:
    """A line of Table 1. `reviewed`: None if only changes are counted.

    `low`, `high`: the 95 % interval of the accepted share over videos, and its `method`; None
    without reviewed items, and before it is measured.
    """

    item: str
    reviewed: int | None
    accepted: int
    low: float | None = None
    high: float | None = None
    method: str = ""


def summarise(
    connection: Connection,
    folder: SetFolder,
    plan: ReviewPlan,
    measurement: Measurement | None = None,
) -> Mapping[str, Any]:
    """The status of a review, as the dashboard and `steadyeye review-status` show it.

    `measurement`: the values that take too long for a page; None: measured now.
    """
    counts = read_item_counts(connection)
    measured = measurement or measure(connection, folder, plan)
    stages = _describe_stages(counts, plan)
    return {
        "set": folder.name,
        "stages": stages,
        "next": suggest_next(counts, folder, plan),
        "reviewers": [asdict(pace) for pace in quality.measure_paces(connection)],
        "agreement": [describe_agreement(agreement) for agreement in measured.agreement],
        "measured_at": measured.made_at,
        "comments": {
            "n": history.count_comments(connection),
            "latest": history.list_comments(connection, LATEST),
        },
        "table": _describe_table(counts, plan),
        "table_one": [
            asdict(line)
            for line in build_table_one(connection, folder, plan, counts, measured.shares)
        ],
        **(_describe_spared(connection, counts, measured) if plan.shortcut else {}),
    }


def record_status(connection: Connection, folder: SetFolder, plan: ReviewPlan) -> Mapping[str, Any]:
    """The status for an export, without times, so that the same decisions give the same bytes."""
    status = summarise(connection, folder, plan)
    return {name: value for name, value in status.items() if name != "measured_at"}


def describe_agreement(agreement: Agreement) -> Mapping[str, Any]:
    """The agreement of a stage as JSON shows it."""
    return {
        "stage": agreement.stage,
        "alpha": agreement.alpha.value,
        **_describe_ends(agreement.alpha),
        "kappa": [
            {"reviewers": list(pair), "kappa": own.value, **_describe_ends(own)}
            for pair, own in agreement.kappa.items()
        ],
    }


def _describe_ends(own: Interval) -> Mapping[str, Any]:
    return {"low": own.low, "high": own.high, "n": own.n, "method": own.method}


def _describe_spared(
    connection: Connection, counts: Counts, measured: Measurement
) -> Mapping[str, Any]:
    spared = Counter[str]()
    for count in counts:
        spared[count.state] += count.n
    facts = {"spared": {state: spared[state] for state in SPARED}, "holds": measured.holds}
    return {"shortcut": {**facts, "audits": audit.list_audits(connection)}}


def count_progress(
    connection: Connection, plan: ReviewPlan, reviewer: Reviewer
) -> Sequence[Mapping[str, Any]]:
    """Each stage with how many of its items are waiting, open and done.

    `mine`: number of items that the reviewer answered, with gold questions. `left`: number of items
    that wait for them.
    """
    left = count_left(connection, plan, reviewer)
    own = read_reviewer_counts(connection, reviewer.id)
    return [
        {
            **stage,
            "mine": own.get((stage["stage"], "answered"), 0),
            "left": left[stage["stage"]],
        }
        for stage in _describe_stages(read_item_counts(connection), plan)
    ]


def _describe_stages(counts: Counts, plan: ReviewPlan) -> Sequence[Mapping[str, Any]]:
    places = _count_places(counts)
    return [
        {
            "stage": name,
            "title": STAGES[name].title,
            "votes": votes,
            "waiting": places[name, "waiting"],
            "open": places[name, "open"],
            "done": sum(places[name, place] for place in ("pending", "accepted", "rejected")),
        }
        for name, votes in plan.votes.items()
    ]


def _count_places(counts: Counts) -> Counter[tuple[str, str]]:
    """(stage, category) → number of items."""
    places = Counter[tuple[str, str]]()
    for count in counts:
        places[count.stage, count.place] += count.n
    return places


def suggest_next(counts: Counts, folder: SetFolder, plan: ReviewPlan) -> Mapping[str, str] | None:
    """The next step of a finished review: what to `do`, and the `command`; None if not finished.

    If pairs are spared, it is the audit as long as any pair waits for it.
    """
    stages = _describe_stages(counts, plan)
    left = any(stage["open"] or stage["waiting"] for stage in stages)
    if left or not any(stage["done"] for stage in stages):
        return None
    root = shlex.quote(str(folder.root))
    if any(count.state == "implied" and not count.known for count in counts):
        return {"do": "audit", "command": f"steadyeye review-audit {root}"}
    out = shlex.quote(f"{folder.root}-reviewed")
    return {"do": "export", "command": f"steadyeye review-export {root} --out {out}"}


def describe_rest(stages: Sequence[Mapping[str, Any]], step: Mapping[str, str] | None) -> str:
    """The text for a reviewer without open items; empty if there are open items.

    `stages`: of `count_progress`. `step`: of `suggest_next`.
    """
    if any(stage["left"] for stage in stages):
        return ""
    if step:
        do = step["do"]
        return f"Done: no item is open for anybody; the admin can {do} it with review-{do}."
    others = sum(stage["open"] for stage in stages)
    return f"No item is open for you now; other reviewers still decide {number_of(others, 'item')}."


def _describe_table(counts: Counts, plan: ReviewPlan) -> Sequence[Mapping[str, Any]]:
    """The counts of each stage: reviewed, accepted, and reasons, the most frequent first.

    `gold`: gold questions, which are not counted. Anchors also have `updated`, see `count_updated`.
    """
    places = _count_places(counts)
    rows = []
    for stage in plan.votes:
        reviewed, accepted = _count_reviewed(counts, stage)
        reasons = Counter[str]()
        for count in counts:
            if (count.stage, count.place) == (stage, "rejected"):
                reasons.update(dict.fromkeys(count.reason.split(", "), count.n))
        row: dict[str, Any] = {
            "stage": stage,
            "reviewed": reviewed,
            "accepted": accepted,
            "gold": places[stage, "gold"],
            "reasons": dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))),
        }
        if stage == "anchors":
            row["updated"] = count_updated(counts)
        rows.append(row)
    return rows


def _count_reviewed(counts: Counts, stage: str) -> tuple[int, int]:
    """How many items of a stage are reviewed, and how many of these are accepted."""
    places = _count_places(counts)
    accepted = places[stage, "accepted"]
    return accepted + places[stage, "rejected"], accepted


def build_table_one(
    connection: Connection,
    folder: SetFolder,
    plan: ReviewPlan,
    counts: Counts,
    shares: Mapping[str, Interval],
) -> Sequence[CountedLine]:
    """The table of a set over the decisions so far.

    `counts`: of `read_item_counts`. `shares`: of `measure_shares`.

    "Do Image Classifiers Generalize Across Time?", Table 1. `anchor labels updated`: accepted
    anchors whose labels the review changed. Gold questions, pairs of rejected anchors and those
    across a scene cut are not counted.
    """
    if folder.content.get("kind") == "boxes":
        return _count_images(connection, folder, plan, counts, shares)
    lines = []
    if "anchors" in plan.votes:
        reviewed = _count_reviewed(counts, "anchors")
        lines.append(_build_line("anchor frames", *reviewed, shares.get("anchors")))
        lines.append(CountedLine("anchor labels updated", None, count_updated(counts)))
    if "pairs" in plan.votes:
        reviewed = _count_reviewed(counts, "pairs")
        lines.append(_build_line("frame pairs", *reviewed, shares.get("pairs")))
    return lines


def _count_images(
    connection: Connection,
    folder: SetFolder,
    plan: ReviewPlan,
    counts: Counts,
    shares: Mapping[str, Interval],
) -> Sequence[CountedLine]:
    """The lines of a set of boxes, from the verdicts on its images."""
    verdicts = judge_images(connection, folder, plan)
    names = list_reviewed_images(connection, plan, verdicts)
    images = [verdicts[name] for name in names]
    lines = []
    if "classification" in plan.votes:
        reviewed = _count_reviewed(counts, "classification")
        lines.append(_build_line("suggested boxes", *reviewed, shares.get("classification")))
    of_images = [(name, int(verdicts[name].accepted), 1) for name in names]
    share = bound_share("boxes", of_images, list_videos(folder, plan))
    accepted = sum(image.accepted for image in images)
    lines.append(_build_line("images", len(images), accepted, share))
    lines.append(CountedLine("boxes", None, sum(len(image.boxes) for image in images)))
    if "classification" in plan.votes:
        right = {id_ for verdict in verdicts.values() for id_ in verdict.right}
        gold = select(items.c.key).where(items.c.stage == "classification", items.c.known)
        reviewed_right = right - set(connection.execute(gold).scalars())
        mistakes = _count_annotated(folder, reviewed_right)
        lines.append(CountedLine("mistakes of the annotation", None, mistakes))
    return lines


def _count_annotated(folder: SetFolder, ids: Set[str]) -> int:
    """How many suggested boxes of some ids have a known label in the data.

    If the detector is right about one of them, the annotation is wrong.
    """
    rows = folder.boxes.select(["id", "annotated"]).to_pylist()
    return sum(row["id"] in ids and row["annotated"] is not None for row in rows)


def _build_line(item: str, reviewed: int, accepted: int, share: Interval | None) -> CountedLine:
    if share is None or not reviewed:
        return CountedLine(item, reviewed, accepted)
    return CountedLine(item, reviewed, accepted, share.low, share.high, share.method)


def count_updated(counts: Counts) -> int:
    """How many accepted anchors have labels that the review changed."""
    anchors = (count for count in counts if count.stage == "anchors" and count.changed)
    return sum(count.n for count in anchors if count.place == "accepted")
