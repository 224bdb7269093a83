"""A study of the difference of two models: which sets may be asked about, and in which order."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.seeds import fingerprint
from steadyeye.metrics.label_studies.answered_sets import (
    METRIC,
    AnsweredSets,
    SharedSets,
    find_sets,
    find_shared_sets,
)
from steadyeye.metrics.label_studies.question import Question
from steadyeye.metrics.label_studies.study import (
    Premise,
    StopRule,
    check_labels,
    mark_answers,
    match_samples,
    needs_premise,
    rank_sets,
)


@dataclass(frozen=True, eq=False)
class DifferenceStudy:
    """A study of the pm-k of `model` minus that of `against`.

    `question`: with its k. `shared`: the sets of both, and where they can differ. `candidates`: the
    sets where they can, in the order of labelling: uniform without replacement by the seed.
    `fingerprint`: changes with the sets and the predictions. Other fields are as in `LabelStudy`;
    without a target of `stop` the labels are enough once the difference is clear. There are no
    checks of the premise, no labels of earlier studies, no strata, and no labels of scenes.
    """

    question: Question
    shared: SharedSets
    candidates: tuple[str, ...]
    model: str
    against: str
    data: str
    fingerprint: str
    samples: tuple[str, str]
    premise: Premise | None = None
    stop: StopRule = field(default_factory=StopRule)
    seed: int = 0
    notes: tuple[str, ...] = ()
    checks: ClassVar[tuple[str, ...]] = ()
    earlier: ClassVar[Mapping[str, str]] = {}
    strata_by: ClassVar[str] = ""
    scenes: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @property
    def sets(self) -> tuple[str, ...]:
        """The ids of all N sets."""
        return self.shared.names

    @property
    def order(self) -> tuple[str, ...]:
        """The candidates, which are the only sets to label."""
        return self.candidates


def plan_difference(
    first: Predictions,
    second: Predictions,
    question: Question,
    premise: Premise | None = None,
    *,
    seed: int = 0,
    stop: StopRule | None = None,
) -> DifferenceStudy:
    """The study of `first` less `second` on the same data; nothing of it depends on any label.

    Raises `UsageError` for another question than pm-k without a number, for other data, and where
    it rests on a premise that nobody stated or checked.
    """
    _check_question(question)
    sets = _find_both_sets(first, second, question)
    question = replace(question, k=sets[0].k)
    if needs_premise(question):
        premise = premise or check_labels(first, question)
    _check_premise(question, premise)
    shared = find_shared_sets(*sets)
    if not shared.names:
        raise UsageError(
            f"{first.model} and {second.model} have no set of {first.data} in common with a "
            "prediction; give complete runs"
        )
    return DifferenceStudy(
        question=question,
        shared=shared,
        candidates=tuple(rank_sets(shared.differing, seed)),
        model=first.model,
        against=second.model,
        data=first.data,
        fingerprint=fingerprint(mark_answers(first, sets[0]), mark_answers(second, sets[1])),
        samples=(first.fingerprint, first.content),
        premise=premise,
        stop=stop or StopRule(),
        seed=seed,
        notes=list_notes((first, second), sets),
    )


def list_notes(
    models: tuple[Predictions, Predictions], sets: tuple[AnsweredSets, AnsweredSets]
) -> tuple[str, ...]:
    """Notes on sets left out for two models, each with its model."""
    both = zip(models, sets, strict=True)
    return tuple(f"{predictions.model}: {note}" for predictions, own in both for note in own.notes)


def _find_both_sets(
    first: Predictions, second: Predictions, question: Question
) -> tuple[AnsweredSets, AnsweredSets]:
    """The sets of each model.

    Raises `UsageError` for two models of one name, for other data, and for sets of another size.
    """
    if first.model == second.model:
        raise UsageError(
            f"both runs have a model named {first.model}, so the result could not name the better "
            "one; give the models different names"
        )
    if not match_samples((first.fingerprint, first.content), second):
        raise UsageError(
            f"the samples of {first.model} on {first.data} are not those of {second.model} on "
            f"{second.data}; give two runs on the same data"
        )
    sets = find_sets(first, question), find_sets(second, question)
    if sets[0].k != sets[1].k:
        raise UsageError(
            f"the sets of {first.model} reach {sets[0].k} frames and those of {second.model} "
            f"{sets[1].k}; give k, such as {METRIC}(k={min(sets[0].k or 0, sets[1].k or 0)})"
        )
    return sets


def _check_question(question: Question) -> None:
    if question.metric != METRIC:
        raise UsageError(
            f"the difference in {question.name} cannot be estimated from few labels; ask for pm_k"
        )
    if question.share is not None:
        raise UsageError(
            f"'{question}' has a number, and a study of two runs asks which has the better "
            f"{question.name}; give '{question.name}' alone"
        )


def _check_premise(question: Question, premise: Premise | None) -> None:
    if premise is None and needs_premise(question):
        raise UsageError(
            f"{question.name} from a few labels assumes that every set shows one class on all "
            "its frames; look at some sets, and state it with --premise constant-class"
        )
    if premise is not None and premise.of_scenes:
        raise UsageError(
            f"the premise {premise.name} does not go with two runs, whose sets are labelled one "
            "by one; give constant-class"
        )
