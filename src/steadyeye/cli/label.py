"""The command that asks people for the labels needed to answer a question."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadyeye.cli.options import ProgressOptions, command
from steadyeye.cli.progress import watching
from steadyeye.cli.review import ServeOptions, check_installed, serve
from steadyeye.cli.terminal import say
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import place

if TYPE_CHECKING:
    from steadyeye.metrics.label_studies.earlier_labels import ServedStudy

FIRST = 10  # sets whose pictures are made before the server begins


Decide = Annotated[
    str | None, typer.Option(help="Requirement to decide, e.g. 'pm_k(k=10) >= 70%'.")
]
MetricOfSets = Annotated[
    str | None,
    typer.Option(help="Metric to estimate, if there is no --decide; default: pm_k."),
]
Target = Annotated[
    str | None,
    typer.Option(help="Half-width of the interval to reach, in percentage points, e.g. ±5."),
]
Premise = Annotated[
    str | None,
    typer.Option(
        help="Assumption of the study: constant-class (each set shows one class) or scene-class "
        "(all sets of a scene do)."
    ),
]
CheckPremise = Annotated[
    int | None,
    typer.Option(
        help="Number of sets that need no label, but are asked about to check constant-class.",
        min=1,
    ),
]
ModelName = Annotated[str | None, typer.Option(help="Name of the model, if the run has several.")]
DataName = Annotated[str | None, typer.Option(help="Name of the data, if the run has several.")]


@dataclass(frozen=True)
class StudyOptions:
    """The question about a run, when the labels are enough, and the labels that already exist."""

    decide: Decide = None
    metric: MetricOfSets = None
    target: Target = None
    budget: Annotated[int | None, typer.Option(help="Maximum number of labels.", min=1)] = None
    premise: Premise = None
    check_premise: CheckPremise = None
    strata: Annotated[
        str,
        typer.Option(
            help="Ask about strata in proportion to their size, by 'confidence' or 'class'; "
            "default: in random order."
        ),
    ] = ""
    seed: Annotated[
        int | None, typer.Option(help="Random seed of the order; default: 0, or that of --labels.")
    ] = None
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder of labels of another study on the same data, as `steadyeye review-export` "
            "writes it, whose sets are not asked about again; may be repeated."
        ),
    ] = None

    @property
    def asks(self) -> bool:
        """Whether the options state a question."""
        return any(v is not None for v in (self.decide, self.metric, self.target, self.budget))


@dataclass(frozen=True)
class LabelOptions:
    """How people label the sets of a study."""

    votes: Annotated[
        int | None,
        typer.Option(
            help="Number of people who label each set; the majority counts; default: 1.", min=1
        ),
    ] = None
    gold: Annotated[
        Path | None,
        typer.Option(
            help="labels.csv of sets or images whose classes are known, to check people; an image "
            "without a class shows no object."
        ),
    ] = None
    go_on: Annotated[
        bool, typer.Option("--continue", help="Ask for more labels even if there are enough.")
    ] = False


@command()
def label(
    *,
    runs: Annotated[
        list[str],
        typer.Argument(help="Folder of a finished run on videos, or of two to compare by pm-k."),
    ],
    options: StudyOptions,
    how: LabelOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the study; default: RUN-labels, for two runs RUN-OTHER-labels."
        ),
    ] = None,
    model: ModelName = None,
    data: DataName = None,
    serving: ServeOptions,
    display: ProgressOptions,
) -> None:
    """Ask people for the labels that answer a question about a run, and for no more.

    Serves the sets in the browser, to several people at once, and prints a private link for each.
    For two runs, the question is which has the higher pm-k. It is answered once the difference is
    clear or, with --target, once its interval is narrow enough.
    """
    check_installed()
    from steadyeye.review.studies.run_cell import find_cell
    from steadyeye.review.studies.study_folder import Labelling
    from steadyeye.runner.collect import name_models

    if len(runs) > 2:
        raise UsageError(f"a study compares one or two runs, not {len(runs)}; give two of them")
    cells = [find_cell(place(run), model, data) for run in runs]
    root = out or _name_folder(runs)
    study: Any
    if len(runs) == 2:
        pairs = name_models([(cell.run, cell.predictions) for cell in cells])
        tables = [predictions for _, predictions in pairs]
        labelling = Labelling(how.votes or 1, _read_gold(root, how, options))
        study = _open_difference(root, tables, options, labelling)
        is_enough = _say_difference_before(study)
    else:
        study = _open_study(root, cells[0].predictions, options, how)
        is_enough = _say_before(root, study)
    if is_enough and not how.go_on:
        return
    _serve_study(root, cells[0], study, serving, (how.go_on, display.form))


def _name_folder(runs: list[str]) -> Path:
    """The default folder of a study of runs."""
    first, *others = (run.rstrip("/") for run in runs)
    return Path("-".join([first, *(Path(run).name for run in others), "labels"]))


def _say_before(root: Path, study: Any) -> bool:
    """Prints the result before any label; returns whether it is enough."""
    from steadyeye.metrics.label_studies.judge import judge
    from steadyeye.metrics.label_studies.sentences import (
        say_bound,
        say_earlier,
        say_premise,
        say_result,
    )
    from steadyeye.metrics.label_studies.video_share import find_video_share, say_videos
    from steadyeye.review.studies.study_folder import read_earlier_labels

    labels = read_earlier_labels(root)
    before = judge(study, labels)
    say(say_bound(study))
    if study.earlier:
        say(say_earlier(study))
    if premise := say_premise(study, before):
        say(premise)
    if before.enough:
        say(say_result(study, before))
        if about := say_videos(find_video_share(study, labels, before), before):
            say(about)
    return before.enough


def _open_study(root: Path, predictions: Any, options: StudyOptions, how: LabelOptions) -> Any:
    """The study in a folder: a new one, or the existing one continued."""
    from steadyeye.review.studies import study_folder

    begun = study_folder.is_begun(root)
    if not options.asks:
        if not begun:
            raise UsageError(
                "no question; give --decide 'pm_k(k=10) >= 70%', --target ±5 or --budget 100"
            )
        _read_gold(root, how, options)
        if options.labels:
            raise UsageError(
                f"'{root}' holds a study already; leave --labels out to continue it, or repeat the "
                "whole command that started it"
            )
        return study_folder.resume_study(root, predictions, None)
    gold = _read_gold(root, how, options)
    served = _serve_earlier(predictions, options, gold)
    if begun:
        return study_folder.resume_study(root, predictions, served.study, served.labels)
    labelling = study_folder.Labelling(how.votes or 1, gold, served.labels)
    study_folder.begin_study(root, served.study, predictions, labelling)
    return served.study


def _read_gold(root: Path, how: LabelOptions, options: StudyOptions) -> Any:
    """The given gold questions, {} if there are none.

    Raises `UsageError` if the study in the folder was begun with other ones, or with another number
    of votes.
    """
    from steadyeye.review.studies import study_folder

    if study_folder.is_begun(root):
        return study_folder.check_labelling(root, how.votes, how.gold)
    if not how.gold:
        return {}
    return study_folder.read_gold(how.gold, _read_question(options).of_images)


def _read_question(options: StudyOptions) -> Any:
    from steadyeye.metrics.label_studies.question import parse_question

    return parse_question(options.decide or options.metric or "pm_k")


def _read_stop(options: StudyOptions) -> Any:
    from steadyeye.metrics.label_studies.study import StopRule

    target = read_half_width(options.target) if options.target else None
    return StopRule(options.budget, target)


def _serve_earlier(predictions: Any, options: StudyOptions, gold: Any) -> "ServedStudy":
    """The study that the options describe, with the labels that already exist."""
    from steadyeye.metrics.label_studies import earlier_labels
    from steadyeye.metrics.label_studies.files import read_labelled_study

    if not options.labels:
        return earlier_labels.ServedStudy(plan_question(predictions, options), {}, {})
    studies = [read_labelled_study(folder) for folder in options.labels]
    options = replace(options, seed=earlier_labels.find_seed(studies, options.seed))
    stated = studies[0].record.premise
    if stated and not options.premise:
        checks = options.check_premise or stated.checks or None
        options = replace(options, premise=stated.name, check_premise=checks)
    study = plan_question(predictions, options)
    served = earlier_labels.serve_study(study, predictions, studies)
    if left := earlier_labels.say_left(served):
        say(left)
    known = len(gold.keys() & served.labels.keys())
    if known:
        say(
            f"{number_of(known, 'label')} left out: their sets are gold questions, whose labels "
            "come from --gold"
        )
    return earlier_labels.leave_out(served, gold)


def plan_question(predictions: Any, options: StudyOptions) -> Any:
    """The study that the options describe. Raises `UsageError` if they contradict each other."""
    from steadyeye.metrics.label_studies.study import CONSTANT_CLASS, parse_premise, plan_study

    if options.decide and (options.metric or options.target):
        raise UsageError("--decide stops by itself; leave --metric and --target out")
    question = _read_question(options)
    if options.decide and question.share is None:
        raise UsageError(f"--decide '{options.decide}' has no number; write 'pm_k(k=10) >= 70%'")
    if options.metric and question.share is not None:
        raise UsageError(f"--metric '{options.metric}' has a number; give it as --decide")
    checks = options.check_premise or 0
    premise = options.premise or (CONSTANT_CLASS if checks else None)
    return plan_study(
        predictions,
        question,
        parse_premise(premise, checks) if premise else None,
        seed=options.seed or 0,
        strata=options.strata,
        stop=_read_stop(options),
    )


def read_half_width(text: str) -> float:
    """The half-width of an interval as people write it, `±5`, as a share: 0.05.

    Raises `UsageError` unless it is above 0 and at most 50 percentage points.
    """
    bare = text.strip().lstrip("±").removeprefix("+-").removesuffix("pp").removesuffix("%").strip()
    try:
        points = float(bare)
    except ValueError:
        points = 0.0
    if not 0 < points <= 50:
        raise UsageError(
            f"--target '{text}' is no half-width; give percentage points above 0 and up to 50, "
            "such as ±5"
        )
    return points / 100


def _serve_study(
    root: Path, cell: Any, study: Any, serving: ServeOptions, how: tuple[bool, str]
) -> None:
    """Serves a study until it is stopped; `how`: whether to continue, and the form of progress."""
    from steadyeye.review.protocol.stages import read_plan
    from steadyeye.review.studies.live_study import LiveStudy
    from steadyeye.review.studies.study_folder import read_earlier_labels, read_folder
    from steadyeye.review.studies.study_items import SetFrames, StudyItems

    folder, _ = read_folder(root)
    go_on, form = how
    of_images = study.question.of_images
    k = None if of_images else study.question.k or 0
    frames = SetFrames(cell.predictions, cell.open_source(), k)
    stop = threading.Event()

    def begin(database: Any) -> Any:
        plan = read_plan(folder.content)
        names = folder.class_names
        order = [name for name in study.order if name not in study.earlier]
        scenes = study.scenes
        items = StudyItems(root, database, frames, plan, order, names, scenes, of_images)
        with watching(form) as watcher:
            items.begin(FIRST, watcher.begin)
        threading.Thread(target=items.keep_ahead, args=[stop], daemon=True).start()
        return LiveStudy(study, items, go_on, read_earlier_labels(root))

    try:
        serve(folder, serving, begin)
    finally:
        stop.set()


def _open_difference(
    root: Path, tables: Sequence[Any], options: StudyOptions, labelling: Any
) -> Any:
    """The study of two models in a folder: a new one, or the existing one continued.

    `tables`: the predictions of both.
    """
    from steadyeye.review.studies import study_folder

    first, second = tables
    if study_folder.is_begun(root):
        planned = _plan_difference(first, second, options) if options.asks else None
        return study_folder.resume_difference(root, (first, second), planned)
    study = _plan_difference(first, second, options)
    study_folder.begin_study(root, study, first, labelling, second)
    return study


def _say_difference_before(study: Any) -> bool:
    """Prints the possible difference without any label; returns whether it is enough."""
    from steadyeye.metrics.label_studies.judge_difference import judge_difference
    from steadyeye.metrics.label_studies.model_difference import say_difference, say_possible

    result = judge_difference(study, {})
    say(say_possible(result.difference))
    if result.enough:
        say(say_difference(result.difference))
    return result.enough


def _plan_difference(first: Any, second: Any, options: StudyOptions) -> Any:
    """The study that the options describe. Raises `UsageError` for options of a single run."""
    from steadyeye.metrics.label_studies.difference_study import plan_difference
    from steadyeye.metrics.label_studies.study import parse_premise

    if options.decide is not None:
        raise UsageError(
            f"--decide '{options.decide}' is for one run; leave it out to compare two runs by "
            "pm-k, or give --metric 'pm_k(k=10)'"
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
        _read_question(options),
        parse_premise(options.premise) if options.premise else None,
        seed=options.seed or 0,
        stop=_read_stop(options),
    )
