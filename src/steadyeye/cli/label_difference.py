"""What `steadyeye label` does with two runs: a study of the difference of their models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadyeye.cli.terminal import say
from steadyeye.core.errors import UsageError


def open_difference(root: Path, tables: Sequence[Any], options: Any, stop: Any, how: Any) -> Any:
    """The study of two models in a folder, begun where there is none; gone on with where there is.

    `tables`: the predictions of both. `options`: the `StudyOptions` of the command, with `stop`,
    its `StopRule`, and `how`, its `Labelling`.
    """
    from steadyeye.review.studies import study_folder

    first, second = tables
    if study_folder.is_begun(root):
        planned = _plan(first, second, options, stop) if options.asks else None
        return study_folder.resume_difference(root, (first, second), planned)
    study = _plan(first, second, options, stop)
    study_folder.begin_study(root, study, first, how, second)
    return study


def say_difference_before(study: Any) -> bool:
    """Says what is known of a difference without a label; whether that is enough."""
    from steadyeye.metrics.label_studies.judge_difference import judge_difference
    from steadyeye.metrics.label_studies.model_difference import say_difference, say_possible

    result = judge_difference(study, {})
    say(say_possible(result.difference))
    if result.enough:
        say(say_difference(result.difference))
    return result.enough


def _plan(first: Any, second: Any, options: Any, stop: Any) -> Any:
    """The study that the options ask for. Raises `UsageError` for those that are for one run."""
    from steadyeye.metrics.label_studies.difference_study import plan_difference
    from steadyeye.metrics.label_studies.question import parse_question
    from steadyeye.metrics.label_studies.study import parse_premise

    if options.decide is not None:
        raise UsageError(
            f"--decide '{options.decide}' is for one run, and two runs are compared by pm-k; leave "
            "--decide out, or give --metric 'pm_k(k=10)'"
        )
    for name, value in (
        ("strata", options.strata),
        ("check-premise", options.check_premise),
        ("labels", options.labels),
    ):
        if value:
            raise UsageError(f"--{name} does not go with two runs; leave it out")
    return plan_difference(
        first,
        second,
        parse_question(options.metric or "pm_k"),
        parse_premise(options.premise) if options.premise else None,
        seed=options.seed or 0,
        stop=stop,
    )
