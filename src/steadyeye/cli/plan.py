"""The command that estimates how many labels a question needs, before any is given."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadyeye.cli.label import (
    CheckPremise,
    DataName,
    Decide,
    MetricOfSets,
    ModelName,
    Premise,
    StudyOptions,
    Target,
    plan_question,
)
from steadyeye.cli.options import command
from steadyeye.cli.terminal import say, show, show_table
from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import place

if TYPE_CHECKING:
    from steadyeye.metrics.label_studies.cost import Pilot
    from steadyeye.metrics.label_studies.cost_sentences import CostTable
    from steadyeye.metrics.label_studies.files import LabelledStudy
    from steadyeye.metrics.label_studies.study import LabelStudy


@dataclass(frozen=True)
class PlanOptions:
    """The question about a run, and what is known about it."""

    decide: Decide = None
    metric: MetricOfSets = None
    target: Target = None
    premise: Premise = None
    check_premise: CheckPremise = None
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Folder of labels of a pilot study, as `steadyeye review-export` writes it."
        ),
    ] = None


@command()
def plan(
    *,
    run: Annotated[str, typer.Argument(help="Folder of a finished run on videos.")],
    options: PlanOptions,
    model: ModelName = None,
    data: DataName = None,
) -> None:
    """Estimate how many labels a question about a run costs, before people label any.

    Without --labels, the costs are those for a range of possible values of the metric; with them,
    those for the value that the labels of a pilot study estimate.
    """
    if options.decide is None and options.target is None:
        raise UsageError("no question; give --decide 'pm_k(k=10) >= 70%' or --target ±5")
    from steadyeye.metrics.label_studies.files import read_labelled_study
    from steadyeye.metrics.label_studies.judge import judge
    from steadyeye.metrics.label_studies.sentences import (
        count_deciding_checks,
        say_bound,
        say_plan,
        say_result,
    )
    from steadyeye.review.studies.run_cell import find_cell

    predictions = find_cell(place(run), model, data).predictions
    labelled = None
    if options.labels:
        labelled = read_labelled_study(options.labels)
        options = _complete(options, labelled.record)
    study = plan_question(predictions, _ask(options))
    before = judge(study, {})
    if before.holds is not None:
        say(f"0 labels: {say_result(study, before)}")
        return
    say(say_bound(study))
    if study.scenes:
        _print_scenes(study, labelled, predictions)
        return
    if checks := say_plan(study):
        say(checks)
    if count_deciding_checks(study) is not None:
        return
    pilot = _read_pilot(study, labelled, predictions) if labelled else None
    print_cost = _print_decision if options.decide else _print_width
    print_cost(study, pilot)


def _ask(options: PlanOptions) -> StudyOptions:
    """The options of the study that is planned."""
    return StudyOptions(
        options.decide,
        options.metric,
        options.target,
        premise=options.premise,
        check_premise=options.check_premise,
    )


def _complete(options: PlanOptions, record: Any) -> PlanOptions:
    """The options, completed by the metric and the premise of a pilot."""
    metric = None if options.decide else options.metric or record.question.name
    premise = options.premise or (record.premise.name if record.premise else None)
    checks = options.check_premise or (record.premise.checks if record.premise else 0) or None
    metric = options.metric or metric
    return replace(options, metric=metric, premise=premise, check_premise=checks)


def _read_pilot(study: "LabelStudy", labelled: "LabelledStudy", predictions: Any) -> "Pilot":
    """The estimate from the labels of a pilot, which is also printed."""
    from steadyeye.metrics.label_studies.cost import read_pilot
    from steadyeye.metrics.label_studies.cost_sentences import say_pilot

    pilot = read_pilot(study, labelled, predictions)
    say(say_pilot(study, pilot))
    return pilot


def _print_scenes(study: "LabelStudy", labelled: "LabelledStudy | None", predictions: Any) -> None:
    from steadyeye.metrics.label_studies.cost import check_pilot, count_scenes
    from steadyeye.metrics.label_studies.cost_sentences import say_scenes
    from steadyeye.metrics.label_studies.files import plan_again

    if labelled is not None:
        check_pilot(study, labelled.record)
        plan_again(labelled.record, predictions)
    say(say_scenes(study, count_scenes(study, labelled.labels if labelled else {})))


def _print_decision(study: "LabelStudy", pilot: "Pilot | None") -> None:
    from steadyeye.metrics.label_studies import cost, cost_sentences

    if pilot is None:
        costs = cost.estimate_decisions(study, cost.list_right(study))
        _print_table(cost_sentences.build_decision_table(study, costs))
        say(cost_sentences.say_unknown(study))
        return
    costs = cost.estimate_decisions(study, pilot.right, pilot.start)
    say(cost_sentences.say_pilot_decision(study, pilot, costs))
    if not cost.is_answered(pilot, costs):
        _print_table(cost_sentences.build_decision_table(study, costs, cost_sentences.ENDS))


def _print_width(study: "LabelStudy", pilot: "Pilot | None") -> None:
    from steadyeye.metrics.label_studies import cost, cost_sentences

    right = [round(share * study.countable) for share in cost.RIGHT_SHARES]
    names: list[str] = []
    if pilot is not None:
        costs = cost.estimate_widths(study, pilot.right)
        say(cost_sentences.say_pilot_width(study, pilot, costs))
        names = [*[""] * len(right), *cost_sentences.ENDS]
        right += pilot.right
    _print_table(cost_sentences.build_width_table(study, cost.estimate_widths(study, right), names))
    if pilot is None:
        say(cost_sentences.say_unknown(study))


def _print_table(table: "CostTable") -> None:
    show_table(table.columns, table.rows, table.numbers, heading=table.heading)
    show("")
    for sentence in table.notes:
        say(sentence)
