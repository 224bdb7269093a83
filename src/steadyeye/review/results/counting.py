"""What people reviewed, counted once for the dashboard, the terminal and every export.

An item is **reviewed** where the votes that stand settle it:

- A *gold question* is not: its answer was known before. It judges reviewers, and holds in the set.
- A *moot* one is not: a pair of an anchor that is not accepted, boxes of an image whose objects are
  all rejected. What was said of it before changes nothing any more.
- A *spared* pair is not: the twin of one that was asked, and what was accepted in bulk.
- A pair that somebody doubts is reviewed once its joint verification is settled, which decides.
- A vote that was taken back, or of an answer that was changed, does not stand.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlalchemy import Connection, select

from steadyeye.data.annotations.review_set import UNDECIDED, SetFolder
from steadyeye.review.db.schema import items
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.protocol.stages import DRAWN, Outcome, outcomes
from steadyeye.review.results.verdicts import BoxVerdict

Settled: TypeAlias = Mapping[str, Outcome]
"""Key of an item → what people made of it, accepted or not."""


@dataclass(frozen=True)
class Counted:
    """What was reviewed in a stage. `reasons`: why not accepted, the commonest first.

    `gold`: gold questions, which are not counted. `updated`: of anchors, those accepted whose
    labels the review changed; None in other stages.
    """

    stage: str
    reviewed: int
    accepted: int
    reasons: Mapping[str, int]
    gold: int
    updated: int | None = None


def count_settled(connection: Connection, plan: ReviewPlan) -> Mapping[str, Settled]:
    """Stage → what people reviewed in it, for each stage of the plan; see the top of the file."""
    every = _every(connection, plan)
    return {
        stage: {
            key: outcome
            for key in every.asked[stage]
            if (outcome := _deciding(every, stage, key)) is not None
            and outcome.accepted is not None
            and not _is_moot(every, stage, key)
        }
        for stage in plan.votes
    }


def count_stages(
    connection: Connection, folder: SetFolder, plan: ReviewPlan
) -> tuple[Counted, ...]:
    """The numbers of each stage of the plan, in its order."""
    gold = Counter(
        connection.execute(select(items.c.stage).where(items.c.gold.is_not(None))).scalars()
    )
    return tuple(
        Counted(
            stage,
            len(found),
            sum(bool(each.accepted) for each in found.values()),
            dict(Counter(e.reason for e in found.values() if not e.accepted).most_common()),
            gold[stage],
            count_updated(folder, found) if stage == "anchors" else None,
        )
        for stage, found in count_settled(connection, plan).items()
    )


def count_updated(folder: SetFolder, anchors: Settled) -> int:
    """Accepted anchors whose labels the review changed."""
    names = folder.classes.names if folder.classes else ()
    given = {
        row["group"]: {names[label] for label in row["labels"]}
        for row in folder.frames.to_pylist()
        if row["offset"] == 0
    }
    accepted = {key: each for key, each in anchors.items() if each.accepted}
    return sum(set(each.answer["labels"]) != given[key] for key, each in accepted.items())


def reviewed_images(
    connection: Connection, plan: ReviewPlan, found: Mapping[str, BoxVerdict]
) -> Sequence[str]:
    """The images of a set of boxes that people decided: not by known answers alone.

    `found`: image → verdict.
    """
    by_people = count_settled(connection, plan)
    last = "box_check" if "box_check" in plan.votes else "boxes"
    drawn = by_people.get(last, {})
    objects = {
        row.unit
        for row in connection.execute(
            select(items.c.key, items.c.unit).where(items.c.stage == "classification")
        )
        if row.key in by_people.get("classification", {})
    }
    return [
        image
        for image, verdict in found.items()
        if verdict.reason != UNDECIDED
        and image in (drawn if verdict.accepted and "boxes" in plan.votes else objects)
    ]


@dataclass(frozen=True)
class _Every:
    """All items, by stage. `made`: key → what is made of it. `unit`: key → its anchor or image.

    `asked`: the keys of those that people were asked about, gold questions left out. `empty`: the
    images all of whose objects are rejected.
    """

    made: Mapping[str, Mapping[str, Outcome | None]]
    unit: Mapping[str, Mapping[str, str]]
    asked: Mapping[str, Mapping[str, None]]
    empty: frozenset[str]


def _every(connection: Connection, plan: ReviewPlan) -> _Every:
    unit: dict[str, dict[str, str]] = {stage: {} for stage in plan.votes}
    asked: dict[str, dict[str, None]] = {stage: {} for stage in plan.votes}
    for row in connection.execute(select(items).order_by(items.c.id)):
        if row.stage in unit:
            unit[row.stage][row.key] = row.unit
            # those that wait or were withdrawn may have been answered before
            if row.gold is None and row.state in ("open", "done"):
                asked[row.stage][row.key] = None
    made = {stage: outcomes(connection, stage) for stage in plan.votes}
    said: dict[str, list[bool]] = {}
    for key, found in made.get("classification", {}).items():
        image = unit["classification"][key]
        said.setdefault(image, []).append(found is not None and found.accepted is False)
    return _Every(made, unit, asked, frozenset(image for image, no in said.items() if all(no)))


def _deciding(every: _Every, stage: str, key: str) -> Outcome | None:
    """What decides an item: of a doubted pair its joint verification, and that of no other."""
    pair = every.made.get("pairs", {}).get(key)
    doubted = pair is not None and pair.accepted is None
    if stage == "pairs" and doubted:
        return every.made["joint"].get(key) if key in every.asked["joint"] else None
    return None if stage == "joint" and not doubted else every.made[stage].get(key)


def _is_moot(every: _Every, stage: str, key: str) -> bool:
    """Whether it does not matter any more what was said of an item."""
    if stage in ("pairs", "joint") and "anchors" in every.made:
        anchor = every.made["anchors"].get(every.unit["pairs"][key])
        return not (anchor and anchor.accepted)
    return stage in DRAWN and every.unit[stage][key] in every.empty
