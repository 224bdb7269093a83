"""Verdicts of the release gate that stand on labels of a few sets, or on none at all."""

from collections.abc import Sequence

from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.requirement import Requirement
from steadyeye.core.storage.files import Place
from steadyeye.metrics.label_studies.files import (
    LABELS,
    STUDY,
    plan_again,
    read_labels,
    read_study,
)
from steadyeye.metrics.label_studies.judge import StudyResult, judge
from steadyeye.metrics.label_studies.question import METRICS, parse_question
from steadyeye.metrics.label_studies.sentences import say_bound, say_cost, say_numbers
from steadyeye.metrics.label_studies.study import LabelStudy, parse_premise, plan_study
from steadyeye.report.gate_verdict import FAILS, HOLDS, OPEN, GateVerdict

OUTCOMES = {True: HOLDS, False: FAILS, None: OPEN}


def judge_labels(tables: Sequence[Predictions], folder: Place, least: int = 0) -> GateVerdict:
    """The verdict of the labels in a folder, as `steadyeye review-export` writes it.

    `tables`: the models of a run, one of which the study was planned for. `least`: the number of
    labels below which nothing is held to be share. Raises `UsageError` where the folder holds no
    study, it asks for no number, or it was planned for other predictions.
    """
    record = read_study(folder / STUDY)
    if record.question.share is None:
        raise UsageError(
            f"'{folder / STUDY}' measures {record.question} and requires no number of it; collect "
            f'labels with `steadyeye label --decide "{record.question} >= 70%"`, say'
        )
    planned_for = [t for t in tables if (t.model, t.data) == (record.model, record.data)]
    study = plan_again(record, (planned_for or list(tables))[0])
    return _word_verdict(study, judge(study, read_labels(folder / LABELS)), least)


def judge_without_labels(
    table: Predictions, required: Requirement, premise: str | None
) -> GateVerdict:
    """The verdict that the predictions alone allow: a share above the most that it can be fails.

    `premise`: what the user states of the sets, as `parse_premise` takes it. Raises `UsageError`
    where labels are needed to tell.
    """
    text = str(required)
    needs = f"{text} needs labels, which {table.data} has not"
    if required.spec.name not in METRICS:
        raise UsageError(f"{needs}; label the data")
    question = parse_question(f"{required.spec} {required.sign} {required.text or required.number}")
    stated = parse_premise(premise) if premise else None
    study = plan_study(table, question, stated)
    result = judge(study, {})
    if result.holds is None:
        raise UsageError(
            f"{needs}: without them {say_bound(study)}; label a few sets with `steadyeye label "
            "--decide`, and give what they show with --labels"
        )
    return _word_verdict(study, result, 0)


def _word_verdict(study: LabelStudy, result: StudyResult, least: int) -> GateVerdict:
    outcome = OUTCOMES[result.holds]
    why = say_cost(study, result)
    if outcome == HOLDS and result.labels < least:
        outcome, why = OPEN, f"n is below the required {least:,}"
    share = result.interval if result.labels else result.bound
    premise = f"premise {study.premise.name}, {study.premise.reason}" if study.premise else ""
    return GateVerdict(
        requirement=str(study.question),
        model=study.model,
        data=study.data,
        outcome=outcome,
        numbers=say_numbers(result) if result.labels else say_bound(study),
        n=result.labels or len(study.sets),
        method="; ".join(filter(None, (share.method, premise))),
        why=why,
        value=share.value,
        low=share.low,
        high=share.high,
    )
