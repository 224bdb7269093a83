"""Verdicts of the release gate from labels of a few sets, or without labels."""

from collections.abc import Sequence
from dataclasses import replace

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.requirement import Requirement
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.storage.files import Place
from steadyeye.metrics.label_studies.files import (
    STUDY,
    StudyRecord,
    find_study,
    read_labelled_study,
)
from steadyeye.metrics.label_studies.judge import StudyResult, judge
from steadyeye.metrics.label_studies.judge_difference import compare_as_planned
from steadyeye.metrics.label_studies.label_reuse import (
    ReuseResult,
    judge_other_model,
    say_reuse,
)
from steadyeye.metrics.label_studies.model_difference import (
    ModelDifference,
    compare_models,
)
from steadyeye.metrics.label_studies.question import METRICS, OF_IMAGES, parse_question
from steadyeye.metrics.label_studies.sentences import say_bound, say_cost, say_numbers, say_premise
from steadyeye.metrics.label_studies.study import (
    LabelStudy,
    match_samples,
    parse_premise,
    plan_study,
)
from steadyeye.metrics.label_studies.video_share import (
    find_share_of_other,
    find_video_share,
    say_videos,
)
from steadyeye.report.gate_verdict import FAILS, HOLDS, OPEN, GateVerdict

OUTCOMES = {True: HOLDS, False: FAILS, None: OPEN}


def judge_labels(tables: Sequence[Predictions], folder: Place, least: int = 0) -> GateVerdict:
    """The verdict of the labels in a folder, as `steadyeye review-export` writes it.

    `tables`: the models of a run, one of which the study was planned for, or another model on the
    same data, for which `judge_other_model` uses the labels. `least`: the number of labels below
    which no requirement holds. Raises `UsageError` if the folder holds no study, the study has no
    required value, or it was planned on other data.
    """
    labelled = read_labelled_study(folder)
    record, labels = labelled.record, labelled.labels
    if record.question.share is None:
        raise UsageError(
            f"'{folder / STUDY}' measures {record.question} without a required value; collect "
            f'labels for one with `steadyeye label --decide "{record.question} >= 70%"`'
        )
    planned_for = [t for t in tables if (t.model, t.data) == (record.model, record.data)]
    candidates = planned_for or list(tables)
    for table in candidates:
        study = find_study(record, table)
        if study is not None:
            result = judge(study, labels)
            videos = find_video_share(study, labels, result)
            about = say_videos(videos, result)
            verdict = _word_verdict(study, result, least)
            return replace(verdict, videos=videos.interval, about_videos=about)
    table = _find_other_model(record, candidates)
    return _word_other(judge_other_model(record, table, labels), least)


def _find_other_model(record: StudyRecord, tables: Sequence[Predictions]) -> Predictions:
    """The model of a run for which labels of another model are used."""
    same = [table for table in tables if match_samples(record.samples, table)]
    if len(same) > 1:
        models = ", ".join(table.model for table in same)
        raise UsageError(
            f"the labels were collected for {record.model}, and the run has several models: "
            f"{models}; give a run of one model"
        )
    return (same or list(tables))[0]


def judge_without_labels(
    table: Predictions, required: Requirement, premise: str | None
) -> GateVerdict:
    """The verdict from predictions alone: a required share above the upper bound fails.

    `premise`: the user's assumption about the sets, for `parse_premise`. Raises `UsageError` if the
    verdict needs labels.
    """
    text = str(required)
    of_images = required.spec.name in OF_IMAGES
    lacking = "the labels of a study" if of_images else f"labels, which {table.data} does not have"
    needs = f"{text} needs {lacking}"
    if required.spec.name not in METRICS:
        raise UsageError(f"{needs}; label the data")
    question = parse_question(f"{required.spec} {required.sign} {required.text or required.number}")
    stated = parse_premise(premise) if premise else None
    study = plan_study(table, question, stated)
    result = judge(study, {})
    if result.holds is None:
        raise UsageError(
            f"{needs}: without them {say_bound(study)}; label a few sets with `steadyeye label "
            "--decide`, and give their folder with --labels"
        )
    return _word_verdict(study, result, 0)


def _word_other(result: ReuseResult, least: int) -> GateVerdict:
    """The verdict on a model that the labels were not collected for."""
    premise = result.study.premise
    words = say_numbers(result.interval), say_reuse(result), str(premise or "")
    videos, share = find_share_of_other(result), result.interval
    verdict = _make_verdict(result.study, result.holds, share, words, result.labels, least)
    return replace(verdict, videos=videos.interval, about_videos=say_videos(videos, result))


def _word_verdict(study: LabelStudy, result: StudyResult, least: int) -> GateVerdict:
    is_labelled = result.counts.total > 0
    share = result.interval if is_labelled else result.bound
    numbers = say_numbers(share) if is_labelled else say_bound(study)
    words = numbers, say_cost(study, result), say_premise(study, result)
    return _make_verdict(study, result.holds, share, words, result.labels, least)


def _make_verdict(
    study: LabelStudy,
    holds: bool | None,
    share: Interval,
    words: tuple[str, str, str],
    labels: int,
    least: int,
) -> GateVerdict:
    """The verdict on a model; `words`: its numbers, why it is so, and the premise."""
    outcome = OUTCOMES[holds]
    numbers, why, premise = words
    if outcome == HOLDS and labels < least:
        outcome, why = OPEN, f"n is below the required {least:,}"
    return GateVerdict(
        requirement=str(study.question),
        model=study.model,
        data=study.data,
        outcome=outcome,
        numbers=numbers,
        n=labels or len(study.sets),
        method="; ".join(filter(None, (share.method, premise))),
        why=why,
        value=share.value,
        low=share.low,
        high=share.high,
    )


def compare_by_labels(
    runs: Sequence[Sequence[Predictions]], folders: Sequence[Place], metric: str = ""
) -> ModelDifference:
    """The difference of two models from the labels in a folder, or in one for each of them.

    `runs`: the tables of two runs, each of one model on the data of the labels. `folders`: as
    `steadyeye review-export` writes them. `metric`: such as `pm_k(k=10)`; if empty, that of the
    labels. Raises `UsageError` for anything else.
    """
    if len(runs) != 2 or len(folders) > 2:
        raise UsageError(
            "--labels compares two runs from one folder of labels, or from one of each, not "
            f"{number_of(len(runs), 'run')} from {len(folders)}; give two runs, and --labels once "
            "or twice"
        )
    studies = [read_labelled_study(folder) for folder in folders]
    first, second = (_find_other_model(studies[0].record, tables) for tables in runs)
    if len(studies) == 1 and studies[0].record.against:
        difference = compare_as_planned(studies[0], first, second, metric)
        if difference is not None:
            return difference
    return compare_models(studies, first, second, metric)
