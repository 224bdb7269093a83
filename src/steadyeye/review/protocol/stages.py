"""The stages of a review and its plan: questions, valid answers, and rules for the outcome.

Shankar et al., "Do Image Classifiers Generalize Across Time?", Sections 2.1 and 3.4 (anchors,
pairs, joint verification); Lau et al., "Natural Adversarial Objects", 2021, Section 3
(classification with five annotators, boxes drawn by one and decided by a second).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from steadyeye.core.errors import UsageError, unknown
from steadyeye.data.annotations.coco_file import OUTSIDE
from steadyeye.data.classes.synonyms import fold_class
from steadyeye.review.protocol.drawn_boxes import read_boxes
from steadyeye.review.protocol.objects import (
    RIGHT,
    check_object,
    check_set_labels,
    find_object,
    find_set_labels,
    majority,
)
from steadyeye.review.protocol.plan_entries import (
    ANSWERS,
    COUNT,
    KEY_FRAMES,
    MINUTES,
    NUMBER,
    SEED,
    SHARE,
    SWITCH,
    VOTES,
    Entries,
    Gold,
    Quiz,
    check_entries,
    show_value,
)

Answer: TypeAlias = Mapping[str, Any]

REASONS = ("motion", "background", "blur", "feature", "other")
"""Why a neighbour does not show the same; `feature`: something distinctive seen in only one."""

SWITCHES = ("across_cuts", "shortcut", "show_offset")
"""The keys of a plan that are true or false; false by default."""

DRAWN = ("boxes", "box_check")
"""The stages in which boxes are drawn."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of the answers to an item.

    `accepted`: None while it is undecided. `answer`: the labels or boxes of an accepted item.
    `reason`: why it is not accepted.
    """

    accepted: bool | None
    answer: Answer
    reason: str = ""


@dataclass(frozen=True)
class Stage:
    """A stage. `votes`: reviewers an item needs, 0: all of them.

    `title`, `question`: texts for the reviewer. `check`: returns the normalised answer; raises
    `UsageError`. `settle`: returns the outcome of the answers to an item, once there are enough.
    """

    name: str
    title: str
    question: str
    votes: int
    check: Callable[[Answer, Sequence[str]], Answer]
    settle: Callable[[Sequence[Answer]], Outcome]


def _read_choice(answer: Answer, key: str, allowed: Sequence[str]) -> str:
    value = answer.get(key)
    if not isinstance(value, str) or value not in allowed:
        raise UsageError(f"{key}={value!r}; choose from {', '.join(allowed)}")
    return value


def _read_labels(answer: Answer, classes: Sequence[str]) -> list[str]:
    labels = answer.get("labels", [])
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise UsageError("labels must be a list of class names")
    for label in labels:
        if label not in classes:
            raise unknown("class", label, classes)
    return [name for name in classes if name in labels]


def check_anchor(answer: Answer, classes: Sequence[str]) -> Answer:
    """`quality` good, unsure or bad, and the `labels` of what is seen."""
    quality = _read_choice(answer, "quality", ("good", "unsure", "bad"))
    labels = _read_labels(answer, classes)
    if quality == "good" and classes and not labels:
        raise UsageError("a good anchor needs at least one label; choose one or say bad")
    return {"quality": quality, "labels": labels}


def settle_anchor(answers: Sequence[Answer]) -> Outcome:
    """Good by a strict majority; labels are those of a strict majority of these reviewers."""
    good = [answer for answer in answers if answer["quality"] == "good"]
    if not majority([answer["quality"] == "good" for answer in answers]):
        qualities = [answer["quality"] for answer in answers]
        quality = max(sorted(set(qualities) - {"good"}), key=qualities.count)
        return Outcome(False, {}, f"anchor {quality}")
    candidates = list(dict.fromkeys(label for answer in good for label in answer["labels"]))
    labels = [label for label in candidates if majority([label in a["labels"] for a in good])]
    if candidates and not labels:
        return Outcome(False, {}, "anchor: no label has a majority")
    return Outcome(True, {"labels": labels})


def check_pair(answer: Answer, classes: Sequence[str]) -> Answer:
    """`correct` and `similar` yes, no or unsure; where not similar, the `reasons`."""
    tidy: dict[str, Any] = {
        key: _read_choice(answer, key, ("yes", "no", "unsure")) for key in ("correct", "similar")
    }
    reasons = answer.get("reasons", [])
    if not isinstance(reasons, list):
        raise UsageError("reasons must be a list")
    for reason in reasons:
        if reason not in REASONS:
            raise unknown("reason", str(reason), REASONS)
    if tidy["similar"] == "no" and not reasons:
        raise UsageError(f"say why it is not similar: {', '.join(REASONS)}")
    return {**tidy, "reasons": [reason for reason in REASONS if reason in reasons]}


def is_doubted(answer: Answer) -> bool:
    """Whether a reviewer called a pair dissimilar, wrongly labelled, or unsure."""
    return not answer["correct"] == answer["similar"] == "yes"


def settle_pair(answers: Sequence[Answer]) -> Outcome:
    """Accepted if nobody doubts it; otherwise all reviewers verify it jointly."""
    doubted = [answer for answer in answers if is_doubted(answer)]
    return Outcome(None, {}, describe_doubts(doubted)) if doubted else Outcome(True, {})


def settle_joint(answers: Sequence[Answer]) -> Outcome:
    """Similar, and correctly labelled, only by a strict majority of all votes each."""
    similar = majority([answer["similar"] == "yes" for answer in answers])
    correct = majority([answer["correct"] == "yes" for answer in answers])
    if similar and correct:
        return Outcome(True, {})
    return Outcome(False, {}, describe_doubts([a for a in answers if is_doubted(a)]))


def describe_doubts(answers: Sequence[Answer]) -> str:
    """The doubts of several answers in words, the commonest first."""
    doubts = [reason for answer in answers for reason in answer["reasons"]]
    doubts += ["wrong label" for answer in answers if answer["correct"] == "no"]
    doubts += ["unsure" for answer in answers if "unsure" in (answer["correct"], answer["similar"])]
    return ", ".join(sorted(set(doubts), key=lambda doubt: (-doubts.count(doubt), doubt)))


def settle_object(answers: Sequence[Answer]) -> Outcome:
    """Accepted if strict majorities agree on its class, call it well sized, and see no flaw."""
    named_class, reason = find_object(answers)
    return Outcome(not reason, named_class, reason)


def settle_set(answers: Sequence[Answer]) -> Outcome:
    """Accepted where the classes of a whole set are known."""
    labels, reason = find_set_labels(answers)
    return Outcome(not reason, labels, reason)


def judge_detection(outcome: Outcome, predicted: str | None) -> Outcome:
    """The outcome of an object that a detector predicts as `predicted`; None: no prediction.

    An object with a right detection is no adversarial object.
    """
    name = outcome.answer.get("object")
    if predicted is None or name is None or fold_class(name) != fold_class(predicted):
        return outcome
    return Outcome(False, outcome.answer, RIGHT)


def name_label(named_class: Answer) -> str:
    """The label of an object among the boxes of a set: its class, or `ood` outside the classes."""
    return str(named_class["object"]) if named_class["listed"] else OUTSIDE


def list_labels(stage: str, classes: Sequence[str]) -> Sequence[str]:
    """The labels of a stage; drawn boxes may also be `ood`, which is outside the classes."""
    more = stage in DRAWN and OUTSIDE not in classes
    return (*classes, OUTSIDE) if more else classes


def check_boxes(answer: Answer, classes: Sequence[str]) -> Answer:
    """`boxes`: see `read_boxes`; their labels: see `list_labels`."""
    return {"boxes": read_boxes(answer.get("boxes"), list_labels("boxes", classes))}


def settle_boxes(answers: Sequence[Answer]) -> Outcome:
    """The last answer counts: the second reviewer decides."""
    return Outcome(True, answers[-1])


STAGES: Mapping[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            "anchors",
            "Anchor labels",
            "Does this frame clearly show what its labels say?",
            1,
            check_anchor,
            settle_anchor,
        ),
        Stage(
            "pairs",
            "Pairs",
            "Does the second frame show what the labels say, and look similar to the first?",
            1,
            check_pair,
            settle_pair,
        ),
        Stage(
            "joint",
            "Joint verification",
            "A reviewer doubted this pair. Are its labels right, and are the frames similar?",
            0,
            check_pair,
            settle_joint,
        ),
        Stage(
            "classification",
            "Objects",
            "What is in the box?",
            5,
            check_object,
            settle_object,
        ),
        Stage(
            "boxes",
            "Boxes",
            "Draw a tight box around every object of the listed classes. Mark a suggested object "
            "of none of them as ood (out of distribution).",
            1,
            check_boxes,
            settle_boxes,
        ),
        Stage(
            "box_check",
            "Box check",
            "Correct the boxes that another reviewer drew, then save.",
            1,
            check_boxes,
            settle_boxes,
        ),
        Stage("labels", "Labels", "What do these frames show?", 1, check_set_labels, settle_set),
    )
}
"""By name, in the order in which a set passes through them."""


@dataclass(frozen=True)
class ReviewPlan:
    """The stages of a review.

    `votes`: stage → reviewers an item needs (0: all), in order. `minutes`: how long an item waits
    for the reviewer it was given to. `seed`: of the order of the items. `across_cuts`: whether
    people review frames across a scene cut from their anchor; if not, these are rejected with the
    reason `scene cut`. `shortcut`: whether pairs are spared that similar pairs imply. `key_frames`:
    above 0, images of one folder are a video, whose boxes one person draws in order: first on every
    `key_frames`-th frame, then on those between; 0: in random order. `show_offset`: whether
    reviewers see how many frames a neighbour is from its anchor.
    """

    votes: Mapping[str, int]
    gold: Gold = field(default_factory=Gold)
    minutes: float = 30.0
    seed: int = 0
    across_cuts: bool = False
    shortcut: bool = False
    key_frames: int = 0
    show_offset: bool = False
    quiz: Quiz = field(default_factory=Quiz)

    @property
    def joint(self) -> Sequence[str]:
        """The stages in which everybody votes."""
        return [stage for stage, votes in self.votes.items() if votes == 0]


ENTRIES: Entries = {
    "stages": dict.fromkeys(STAGES, VOTES),
    "gold": {
        "every": NUMBER,
        "least": SHARE,
        "minimum": COUNT,
        "window": NUMBER,
        "answers": dict.fromkeys(STAGES, ANSWERS),
    },
    "quiz": {"size": COUNT, "least": SHARE},
    "minutes": MINUTES,
    "seed": SEED,
    **dict.fromkeys(SWITCHES, SWITCH),
    "key_frames": KEY_FRAMES,
}
"""The entries of a plan."""


def read_plan(content: Mapping[str, Any]) -> ReviewPlan:
    """The plan of a set, from its manifest, set.json. Raises `UsageError` for invalid entries.

    ::

        {"review": {"stages": {"anchors": 1, "pairs": 2, "joint": 0},
                    "gold": {"every": 20, "least": 0.8, "minimum": 5, "window": 20,
                             "answers": {"pairs": {"a.mp4/000026/000023":
                                                   {"correct": "yes", "similar": "yes"}}}},
                    "quiz": {"size": 0, "least": 0.8},
                    "minutes": 30, "seed": 0, "across_cuts": false, "shortcut": false,
                    "key_frames": 0, "show_offset": false}}
    """
    record = content.get("review", {})
    check_entries(record, ENTRIES, "review")
    votes = record.get("stages") or default_votes(content)
    ordered = {name: votes[name] for name in STAGES if name in votes}
    if "pairs" in ordered:
        ordered.setdefault("joint", 0)
    if "boxes" in ordered:
        ordered.setdefault("box_check", 1)
    gold, quiz = _read_gold(record.get("gold", {})), Quiz(**record.get("quiz", {}))
    for name, answers in gold.answers.items():
        if name not in ordered:
            cure = f"choose from {', '.join(ordered)}, or add it to stages"
            raise UsageError(f"set.json: review.gold.answers has the stage {name!r}; {cure}")
        if quiz.size > len(answers):
            raise UsageError(
                f"set.json: review.quiz.size is {quiz.size}, and {name} has {len(answers)} gold "
                "questions; add some, or make the quiz smaller"
            )
    rest = {key: record[key] for key in record.keys() - {"stages", "gold", "quiz"}}
    return ReviewPlan(ordered, gold, quiz=quiz, **rest)


def _read_gold(record: Mapping[str, Any]) -> Gold:
    """The gold questions of a plan; `minimum` is at most `window`."""
    gold = Gold(**record)
    if gold.minimum <= gold.window:
        return gold
    if "minimum" in record:
        raise UsageError(
            f"set.json: review.gold.minimum is {gold.minimum}, and review.gold.window is "
            f"{gold.window}, so that no reviewer would ever be judged; make the window larger, "
            "or the minimum smaller"
        )
    return replace(gold, minimum=gold.window)


def list_gold(gold: Gold, classes: Sequence[str]) -> Iterator[tuple[str, str, Answer]]:
    """(stage, item, answer) of the gold questions of a plan.

    Raises `UsageError` for an answer that its stage does not allow.
    """
    for stage, answers in gold.answers.items():
        for key, answer in answers.items():
            try:
                yield stage, key, STAGES[stage].check(answer, classes)
            except UsageError as error:
                place = f"review.gold.answers.{stage}, {show_value(key)}: {show_value(answer)}"
                raise UsageError(f"set.json: {place}: {error}") from None


def default_votes(content: Mapping[str, Any]) -> Mapping[str, int]:
    """All stages that a set of this kind passes through, with the papers' votes."""
    names = _STAGES_OF.get(str(content.get("kind")), ("anchors", "pairs"))
    return {name: STAGES[name].votes for name in names}


_STAGES_OF = {"boxes": ("classification", "boxes"), "labels": ("labels",)}
"""The kind of a set → its stages; frames have anchors and pairs."""
