"""A running label study: the result of the labels so far, and whether they are enough."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import write_file
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.metrics.label_studies.answered_sets import UNKNOWN
from steadyeye.metrics.label_studies.difference_study import DifferenceStudy
from steadyeye.metrics.label_studies.files import LABELS, STUDY, read_study, write_labels
from steadyeye.metrics.label_studies.judge import Labels, StudyResult, judge
from steadyeye.metrics.label_studies.judge_difference import DifferenceResult, judge_difference
from steadyeye.metrics.label_studies.study import LabelStudy
from steadyeye.review.database import reviewers
from steadyeye.review.protocol.objects import CHANGES, COMPLETE, UNSURE
from steadyeye.review.protocol.stages import Outcome, ReviewPlan
from steadyeye.review.protocol.votes import settle_stage
from steadyeye.review.studies.study_folder import read_earlier_labels
from steadyeye.review.studies.study_items import (
    STAGE,
    StudyItems,
    list_missing_labels,
    read_missing,
)


@dataclass(frozen=True)
class LabelCounts:
    """Counts of the labelled sets.

    `labelled`: sets with all their votes, without gold questions. `unclear`: sets among them whose
    class nobody could tell or on which people disagree. `changing`, `unsure`: sets whose class is
    not, or perhaps not, on all frames. `gold_wrong`, `gold_asked`: answers to gold questions.
    """

    labelled: int = 0
    unclear: int = 0
    changing: int = 0
    unsure: int = 0
    gold_wrong: int = 0
    gold_asked: int = 0


@dataclass(eq=False)
class LiveStudy:
    """A running study. `go_on`: whether it asks for more labels than enough.

    `earlier`: labels of earlier studies, candidate → its classes. `latest`: the labels that were
    judged last, and their result. `ends`: the first labels of the order → their number, and the
    ends of the interval after them.
    """

    study: LabelStudy | DifferenceStudy
    items: StudyItems
    go_on: bool = False
    earlier: Labels = field(default_factory=dict)
    latest: tuple[Labels, StudyResult | DifferenceResult] | None = field(default=None, repr=False)
    ends: dict[Any, tuple[int, float, float]] = field(default_factory=dict, repr=False)

    def judge(self, connection: Connection) -> StudyResult | DifferenceResult:
        """The result of the current labels."""
        labels = self.read_labels(connection)
        latest = self.latest
        if latest is None or latest[0] != labels:
            # one assignment: pages are served by several threads
            self.latest = latest = labels, judge_study(self.study, labels)
        return latest[1]

    def read_labels(self, connection: Connection) -> Labels:
        """Set → the classes that all its frames show, from earlier studies and from people.

        A set without pictures has none.
        """
        of_images = self.study.question.of_images
        missing = list_missing_labels(self.items.faults, of_images)
        return {**missing, **self.earlier, **read_labels(connection, of_images)}

    def explain_rest(self, connection: Connection) -> str:
        """Why the study asks for no label now; empty if it does."""
        if not self.go_on and self.judge(connection).enough:
            return "Enough labels: no more are asked for."
        return ""


def judge_study(
    study: LabelStudy | DifferenceStudy, labels: Labels
) -> StudyResult | DifferenceResult:
    """The result of labels for a study of one or of two models."""
    if isinstance(study, DifferenceStudy):
        return judge_difference(study, labels)
    return judge(study, labels)


def read_labels(connection: Connection, of_images: bool) -> dict[str, tuple[str, ...]]:
    """Set → the classes that all its frames show, for every settled set; empty if unknown.

    Unknown are sets whose class nobody can tell, on which people disagree, or whose class changes.
    `of_images`: for single images, all classes of each; unknown ones have `UNKNOWN`.
    """
    settled = settle_stage(connection, STAGE)
    return {
        name: list_labels(outcome, of_images)
        for name, outcome in settled.items()
        if outcome is not None
    }


def list_labels(outcome: Outcome, of_images: bool = False) -> tuple[str, ...]:
    """The classes that all frames of a settled set show, or that an image shows.

    If they are unknown: none, or `UNKNOWN` for an image.
    """
    is_known = outcome.accepted and (outcome.answer["whole"] == COMPLETE) == of_images
    return tuple(outcome.answer["labels"]) if is_known else (UNKNOWN,) if of_images else ()


def count_labels(connection: Connection, gold: Mapping[str, Any]) -> LabelCounts:
    """The counts of the answers so far; `gold`: the sets of gold questions."""
    outcomes = [
        outcome
        for name, outcome in settle_stage(connection, STAGE).items()
        if outcome is not None and name not in gold
    ]
    reasons = [outcome.reason for outcome in outcomes]
    sums = func.sum(reviewers.c.gold_right), func.sum(reviewers.c.gold_asked)
    right, answered = (int(number or 0) for number in connection.execute(select(*sums)).one())
    clear = (CHANGES, UNSURE, "")
    return LabelCounts(
        labelled=len(outcomes),
        unclear=sum(reason not in clear for reason in reasons),
        changing=reasons.count(CHANGES),
        unsure=reasons.count(UNSURE),
        gold_wrong=answered - right,
        gold_asked=answered,
    )


def export_labels(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """The counts of the labels written to a folder, as labels.csv beside study.json.

    Labels of earlier studies that the study uses are written too, and sets without pictures as sets
    that nobody could label. The same labels give the same bytes. A running study is exported as it
    is, `partial` or not. Raises `UsageError` for a set that is no study.
    """
    if folder.content.get("kind") != "labels":
        raise UsageError(f"'{folder.root}' is no label study; export another format")
    of_images = read_study(folder.root / STUDY).question.of_images
    labels = {
        **list_missing_labels(read_missing(folder.root), of_images),
        **read_earlier_labels(folder.root),
        **read_labels(connection, of_images),
    }
    unknown = (UNKNOWN,) if of_images else ()
    write_file(out / LABELS, write_labels(labels))
    write_file(out / STUDY, (folder.root / STUDY).read_bytes())
    return {
        "labels": len(labels),
        "without_class": sum(tuple(own) == unknown for own in labels.values()),
    }
