"""Labels of earlier studies, used in a new one on the same data to save labels.

Labels are stored as the class of each set, and the order of a seed is the same for every model. So
the new study is one of the new model in which some labels are already known: it counts them in its
own order, up to the first set without a label or until they are enough. When the earlier study
stopped determines which labels are known, but not which of them count.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.metrics.label_studies.answered_sets import find_sets
from steadyeye.metrics.label_studies.files import LabelledStudy, StudyRecord
from steadyeye.metrics.label_studies.judge import Labels
from steadyeye.metrics.label_studies.label_reuse import (
    check_classes,
    check_samples,
    spread_over_scenes,
)
from steadyeye.metrics.label_studies.question import Question
from steadyeye.metrics.label_studies.study import LabelStudy


@dataclass(frozen=True, eq=False)
class ServedStudy:
    """A `study` with the usable labels of earlier ones.

    `labels`: candidate or check of the study → its classes. `collected`: model → number of labels
    collected for it, used or not.
    """

    study: LabelStudy
    labels: Labels
    collected: Mapping[str, int]


def find_seed(studies: Sequence[LabelledStudy], seed: int | None = None) -> int:
    """The seed that a study has to have for labels of earlier ones to be its first.

    `seed`: the one that the user gives, None: none. Raises `UsageError` where it is another, or the
    studies have several: who may choose among orders whose labels are known chooses the result.
    """
    first, *others = (study.record.seed for study in studies)
    for other in others:
        if other != first:
            raise UsageError(
                f"the labels were collected in different orders, of --seed {first} and {other}; "
                "give labels of one order"
            )
    if seed is not None and seed != first:
        raise UsageError(
            f"the labels were collected with --seed {first}, not {seed}; leave --seed out"
        )
    return first


def serve_study(
    study: LabelStudy, predictions: Predictions, studies: Sequence[LabelledStudy]
) -> ServedStudy:
    """The study with the labels of earlier ones on the same data, for the sets that it needs.

    `study`: planned on `predictions` with their seed. Raises `UsageError` for labels of other
    samples, of another premise or kind of question, in an order by strata, and for those that
    contradict each other.
    """
    if study.strata_by:
        raise UsageError(
            f"labels of another study do not go with --strata {study.strata_by}; leave one out"
        )
    labels: dict[str, Sequence[str]] = {}
    models: dict[str, str] = {}
    for earlier in studies:
        _check_record(study, earlier.record)
        check_samples(earlier.record, predictions)
        check_classes(labels, earlier.labels)
        origins = earlier.record.earlier
        models = {n: origins.get(n, earlier.record.model) for n in earlier.labels} | models
        labels |= earlier.labels
    sources = {name: name for name in labels}
    if study.scenes:
        sources = spread_over_scenes(find_sets(predictions, study.question), labels)
    serving = [name for name in study.order if name in sources]
    return ServedStudy(
        study=replace(study, earlier={name: models[sources[name]] for name in serving}),
        labels={name: tuple(labels[sources[name]]) for name in serving},
        collected=Counter(models.values()),
    )


def leave_out(served: ServedStudy, names: Mapping[str, object]) -> ServedStudy:
    """Without the labels of some sets, which get another one in the study."""
    rest = {name: classes for name, classes in served.labels.items() if name not in names}
    models = {name: served.study.earlier[name] for name in rest}
    return replace(served, study=replace(served.study, earlier=models), labels=rest)


def _check_record(study: LabelStudy, record: StudyRecord) -> None:
    if record.strata:
        raise UsageError(
            f"the labels were collected in an order by {record.strata} of {record.model}; give "
            "labels that were collected without --strata"
        )
    kind = _name_kind(record.question)
    if kind != _name_kind(study.question):
        raise UsageError(
            f"the labels were collected for {record.question.name}, not for {study.question.name}; "
            f"ask for {kind}, or leave --labels out"
        )
    names = [p.name if p else "none" for p in (record.premise, study.premise)]
    if names[0] != names[1]:
        raise UsageError(
            f"the labels were collected with --premise {names[0]}, not {names[1]}; give "
            f"--premise {names[0]}"
        )


def _name_kind(question: Question) -> str:
    """The questions that labels of this one say as much of, as a user writes them."""
    if question.of_images:
        return "false_positive_rate or image_error_rate"
    if question.metric == "accuracy":
        return question.name
    return f"pm_k(k={question.k}) or drop(k={question.k})"


def say_left(served: ServedStudy) -> str:
    """How many of the labels do not serve a study, in one line; '' where all do."""
    collected, serving = sum(served.collected.values()), len(served.study.earlier)
    if serving == collected:
        return ""
    left = number_of(collected - serving, "label")
    why = "their sets cannot change the result"
    if served.study.checks:
        why = "their sets cannot count and are not among the checks"
    return f"{left} of {collected:,} are not needed: {why}"
