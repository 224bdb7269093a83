"""Where a review stands: its stages, its people, and the numbers of the papers' Table 1.

What people reviewed is counted here alone, for the dashboard, the terminal and every export. An
item is **reviewed** where the votes that stand settle it:

- A *gold question* is not: its answer was known before. It judges reviewers, and holds in the set.
- A *moot* one is not: a pair of an anchor that is not accepted, boxes of an image whose objects are
  all rejected. What was said of it before changes nothing any more.
- A *spared* pair is not: the twin of one that was asked, and what was accepted in bulk.
- A pair that somebody doubts is reviewed once its joint verification is settled, which decides.
- A vote that was taken back, or of an answer that was changed, does not stand.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, func, select

from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.data.annotations.review_set import UNDECIDED, SetFolder
from steadyeye.review.bulk import audit, skip_pairs
from steadyeye.review.database import assignments, items
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import DRAWN, STAGES, Outcome, ReviewPlan
from steadyeye.review.protocol.votes import settle_stage
from steadyeye.review.results.verdicts import BoxVerdict, judge_images
from steadyeye.review.workflow import quality, queue

Settled: TypeAlias = Mapping[str, Outcome]
"""Key of an item → its outcome, accepted or not."""


@dataclass(frozen=True)
class CountedLine:
    """A line of Table 1. `reviewed`: None where only what changed is counted.

    `low`, `high`: the 95 % interval of the share accepted, Clopper–Pearson over what was reviewed;
    None where nothing was.
    """

    item: str
    reviewed: int | None
    accepted: int
    low: float | None = None
    high: float | None = None


def summarise(connection: Connection, folder: SetFolder, plan: ReviewPlan) -> Mapping[str, Any]:
    """The status of a review, as the dashboard and `steadyeye review-status` show it."""
    settled = find_reviewed(connection, plan)
    agreements = [quality.measure_agreement(connection, name) for name in plan.votes]
    return {
        "set": folder.name,
        "stages": count_progress(connection, plan),
        "reviewers": [asdict(pace) for pace in quality.measure_paces(connection)],
        "agreement": [
            {
                "stage": agreement.stage,
                "alpha": agreement.alpha,
                "n": agreement.n,
                "kappa": [
                    {"reviewers": list(pair), "kappa": value, "n": n}
                    for pair, (value, n) in agreement.kappa.items()
                ],
            }
            for agreement in agreements
        ],
        "table": _count_stages(connection, folder, settled),
        "table_one": [asdict(line) for line in build_table_one(connection, folder, plan, settled)],
        **(_describe_spared(connection) if plan.shortcut else {}),
    }


def _describe_spared(connection: Connection) -> Mapping[str, Any]:
    facts = {"spared": skip_pairs.count_spared(connection), "holds": audit.holds(connection)}
    return {"shortcut": {**facts, "audits": audit.list_audits(connection)}}


def count_progress(
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


def _count_stages(
    connection: Connection, folder: SetFolder, settled: Mapping[str, Settled]
) -> Sequence[Mapping[str, Any]]:
    """The counts of each stage: reviewed, accepted, and why not, the commonest reason first.

    `gold`: gold questions, which are not counted. Of anchors also `updated`, see `count_updated`.
    """
    query = select(items.c.stage).where(items.c.gold.is_not(None))
    gold = Counter(connection.execute(query).scalars())
    rows = []
    for stage, outcomes in settled.items():
        reasons = Counter(o.reason for o in outcomes.values() if not o.accepted)
        row: dict[str, Any] = {
            "stage": stage,
            "reviewed": len(outcomes),
            "accepted": _count_accepted(outcomes),
            "gold": gold[stage],
            "reasons": dict(reasons.most_common()),
        }
        if stage == "anchors":
            row["updated"] = count_updated(folder, outcomes)
        rows.append(row)
    return rows


def build_table_one(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, settled: Mapping[str, Settled]
) -> Sequence[CountedLine]:
    """The table of a set, over what is decided so far; `settled`: of `find_reviewed`.

    "Do Image Classifiers Generalize Across Time?", Table 1. `anchor labels updated`: accepted
    anchors whose labels the review changed. Gold questions, pairs of rejected anchors and those
    across a scene cut are not counted.
    """
    if folder.content.get("kind") == "boxes":
        verdicts = judge_images(connection, folder, plan)
        images = [verdicts[i] for i in _list_reviewed_images(connection, plan, verdicts, settled)]
        lines = []
        if "classification" in settled:
            lines.append(_build_line("suggested boxes", settled["classification"]))
        accepted = sum(image.accepted for image in images)
        lines.append(_build_share("images", len(images), accepted))
        return [*lines, CountedLine("boxes", None, sum(len(image.boxes) for image in images))]
    lines = []
    if "anchors" in settled:
        updated = count_updated(folder, settled["anchors"])
        lines.append(_build_line("anchor frames", settled["anchors"]))
        lines.append(CountedLine("anchor labels updated", None, updated))
    if "pairs" in settled:
        lines.append(_build_line("frame pairs", settled["pairs"]))
    return lines


def _build_line(item: str, outcomes: Settled) -> CountedLine:
    return _build_share(item, len(outcomes), _count_accepted(outcomes))


def _build_share(item: str, reviewed: int, accepted: int) -> CountedLine:
    interval = clopper_pearson(accepted, reviewed) if reviewed else (None, None)
    return CountedLine(item, reviewed, accepted, *interval)


def _count_accepted(outcomes: Settled) -> int:
    return sum(bool(outcome.accepted) for outcome in outcomes.values())


def count_updated(folder: SetFolder, anchors: Settled) -> int:
    """How many accepted anchors have labels that the review changed."""
    original = {
        row["group"]: {folder.class_names[label] for label in row["labels"]}
        for row in folder.frames.to_pylist()
        if row["offset"] == 0
    }
    accepted = {key: outcome for key, outcome in anchors.items() if outcome.accepted}
    return sum(set(o.answer["labels"]) != original[key] for key, o in accepted.items())


def _list_reviewed_images(
    connection: Connection,
    plan: ReviewPlan,
    verdicts: Mapping[str, BoxVerdict],
    settled: Mapping[str, Settled],
) -> Sequence[str]:
    """The images of a set of boxes that people decided: not by known answers alone."""
    last = "box_check" if "box_check" in plan.votes else "boxes"
    drawn_on = settled.get(last, {})
    query = select(items.c.key, items.c.unit).where(items.c.stage == "classification")
    objects = settled.get("classification", {})
    confirmed = {row.unit for row in connection.execute(query) if row.key in objects}
    return [
        image
        for image, verdict in verdicts.items()
        if verdict.reason != UNDECIDED
        and image in (drawn_on if verdict.accepted and "boxes" in plan.votes else confirmed)
    ]


@dataclass(frozen=True)
class _Items:
    """All items, by stage. `outcomes`: by key. `unit`: key → its anchor or image.

    `answerable`: the keys of those that people are asked about, gold questions left out. `empty`:
    the images all of whose objects are rejected.
    """

    outcomes: Mapping[str, Mapping[str, Outcome | None]]
    unit: Mapping[str, Mapping[str, str]]
    answerable: Mapping[str, Mapping[str, None]]
    empty: frozenset[str]


def find_reviewed(connection: Connection, plan: ReviewPlan) -> Mapping[str, Settled]:
    """Stage → what people reviewed in it, for each stage of the plan; see the top of the file."""
    every = _read_items(connection, plan)
    return {
        stage: {
            key: outcome
            for key in every.answerable[stage]
            if (outcome := _find_deciding(every, stage, key)) is not None
            and outcome.accepted is not None
            and not _is_moot(every, stage, key)
        }
        for stage in plan.votes
    }


def _read_items(connection: Connection, plan: ReviewPlan) -> _Items:
    unit: dict[str, dict[str, str]] = {stage: {} for stage in plan.votes}
    answerable: dict[str, dict[str, None]] = {stage: {} for stage in plan.votes}
    for row in connection.execute(select(items).order_by(items.c.id)):
        if row.stage in unit:
            unit[row.stage][row.key] = row.unit
            # those that wait or were withdrawn may have been answered before
            if row.gold is None and row.state in ("open", "done"):
                answerable[row.stage][row.key] = None
    outcomes = {stage: settle_stage(connection, stage) for stage in plan.votes}
    rejected: dict[str, list[bool]] = {}
    for key, outcome in outcomes.get("classification", {}).items():
        image = unit["classification"][key]
        rejected.setdefault(image, []).append(outcome is not None and outcome.accepted is False)
    empty = frozenset(image for image, objects in rejected.items() if all(objects))
    return _Items(outcomes, unit, answerable, empty)


def _find_deciding(every: _Items, stage: str, key: str) -> Outcome | None:
    """The outcome that decides an item: of a doubted pair that of its joint verification."""
    pair = every.outcomes.get("pairs", {}).get(key)
    doubted = pair is not None and pair.accepted is None
    if stage == "pairs" and doubted:
        return every.outcomes["joint"].get(key) if key in every.answerable["joint"] else None
    return None if stage == "joint" and not doubted else every.outcomes[stage].get(key)


def _is_moot(every: _Items, stage: str, key: str) -> bool:
    """Whether what was decided of an item does not matter any more."""
    if stage in ("pairs", "joint") and "anchors" in every.outcomes:
        anchor = every.outcomes["anchors"].get(every.unit["pairs"][key])
        return not (anchor and anchor.accepted)
    return stage in DRAWN and every.unit[stage][key] in every.empty
