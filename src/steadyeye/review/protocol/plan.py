"""How a set is reviewed: its stages, votes, gold questions; from set.json."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.review.protocol.stages import STAGES


@dataclass(frozen=True)
class Gold:
    """Questions with a known answer, mixed in unmarked.

    `every`: one in so many questions, on average. `least`: the share of the last `window` that a
    reviewer must have right, judged once there are `minimum`; below it they are paused.
    `answers`: stage → item → what holds of it.
    """

    every: int = 20
    least: float = 0.8
    minimum: int = 5
    window: int = 20
    answers: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True)
class ReviewPlan:
    """The stages of a review.

    `votes`: stage → reviewers an item needs (0: all), in order. `minutes`: how long an item waits
    for the reviewer it was given to. `seed`: of the order of the items. `across_cuts`: whether
    people are asked about frames across a scene cut from their anchor; if not, those are rejected
    with the reason `scene cut`. `shortcut`: whether pairs are spared that those around them make
    sure of.
    """

    votes: Mapping[str, int]
    gold: Gold = field(default_factory=Gold)
    minutes: float = 30.0
    seed: int = 0
    across_cuts: bool = False
    shortcut: bool = False


def read(content: Mapping[str, Any]) -> ReviewPlan:
    """The plan of a set, from its manifest. Raises `UsageError` for what it cannot mean.

    ::

        {"review": {"stages": {"anchors": 1, "pairs": 2, "joint": 0},
                    "gold": {"every": 20, "least": 0.8, "minimum": 5, "window": 20,
                             "answers": {"pairs": {"a.mp4/000026/000023":
                                                   {"correct": "yes", "similar": "yes"}}}},
                    "minutes": 30, "seed": 0, "across_cuts": false, "shortcut": false}}
    """
    said = content.get("review", {})
    known = {"stages", "gold", "minutes", "seed", "across_cuts", "shortcut"}
    for key in said:
        if key not in known:
            raise unknown("key of the review", key, known)
    votes = said.get("stages") or default(content)
    for name, count in votes.items():
        if name not in STAGES:
            raise unknown("stage", name, STAGES)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise UsageError(f"the stage {name} has {count!r} votes; give a number, 0 for all")
    ordered = {name: votes[name] for name in STAGES if name in votes}
    if "pairs" in ordered:
        ordered.setdefault("joint", 0)
    if "boxes" in ordered:
        ordered.setdefault("box_check", 1)
    try:
        gold = Gold(**said.get("gold", {}))
    except TypeError as error:
        raise UsageError(f"the gold questions of the review: {error}") from None
    for switch in ("across_cuts", "shortcut"):
        if not isinstance(said.get(switch, False), bool):
            raise UsageError(f"{switch} of the review is {said[switch]!r}; say true or false")
    minutes, seed = float(said.get("minutes", 30)), int(said.get("seed", 0))
    switches = said.get("across_cuts", False), said.get("shortcut", False)
    return ReviewPlan(ordered, gold, minutes, seed, *switches)


def default(content: Mapping[str, Any]) -> Mapping[str, int]:
    """All stages that a set of this kind passes through, with the papers' votes."""
    wanted = ("classification", "boxes") if content.get("kind") == "boxes" else ("anchors", "pairs")
    return {name: STAGES[name].votes for name in wanted}
