"""The command that asks people for the labels that a question needs, and no more."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from steadyeye.cli.options import ProgressOptions, command
from steadyeye.cli.progress import watching
from steadyeye.cli.review import ServeOptions, check_installed, serve
from steadyeye.cli.terminal import say
from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import place

FIRST = 10  # sets whose pictures are made before the server begins


Decide = Annotated[
    str | None, typer.Option(help="What is to be decided, such as 'pm_k(k=10) >= 70%'.")
]
MetricOfSets = Annotated[
    str | None,
    typer.Option(help="What is measured where nothing is to be decided; default: pm_k."),
]
Target = Annotated[
    str | None, typer.Option(help="Half-width of the interval: ±5 (percentage points).")
]
Premise = Annotated[
    str | None, typer.Option(help="What is taken of the sets: constant-class, or scene-class.")
]
ModelName = Annotated[str | None, typer.Option(help="Name of the model, if the run has several.")]
DataName = Annotated[str | None, typer.Option(help="Name of the data, if the run has several.")]


@dataclass(frozen=True)
class StudyOptions:
    """What is asked of a run, and when the labels are enough."""

    decide: Decide = None
    metric: MetricOfSets = None
    target: Target = None
    budget: Annotated[int | None, typer.Option(help="Stop after so many labels.", min=1)] = None
    premise: Premise = None
    strata: Annotated[
        str, typer.Option(help="Order proportional to strata: confidence or class.")
    ] = ""
    seed: Annotated[int, typer.Option(help="Random seed of the order.")] = 0

    @property
    def asks(self) -> bool:
        """Whether they say what is options."""
        return any(v is not None for v in (self.decide, self.metric, self.target, self.budget))


@dataclass(frozen=True)
class LabelOptions:
    """How people label the sets of a study."""

    votes: Annotated[
        int, typer.Option(help="People who label each set; of several the majority counts.", min=1)
    ] = 1
    gold: Annotated[
        Path | None,
        typer.Option(help="Sets with known classes, as labels.csv, to check people by."),
    ] = None
    go_on: Annotated[
        bool, typer.Option("--continue", help="Ask for labels also when they are enough.")
    ] = False


@command()
def label(
    *,
    runs: Annotated[
        list[str],
        typer.Argument(help="Folder of a run on videos; of two runs, which has the better pm-k."),
    ],
    options: StudyOptions,
    how: LabelOptions,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the study; default: RUN-labels, or RUN-OTHER-labels."),
    ] = None,
    model: ModelName = None,
    data: DataName = None,
    serving: ServeOptions,
    display: ProgressOptions,
) -> None:
    """Ask people for the labels that answer a question about a run, and for no more.

    Of two runs the question is which has the better pm-k: it is enough once the difference is
    clear, or with --target once its interval is narrow enough.

    Serves the sets in the browser, to several people at once, and prints a private link each.
    """
    check_installed()
    from steadyeye.review.studies.run_cell import find_cell

    if len(runs) > 2:
        raise UsageError(f"{len(runs)} runs, and a study is of one or two; give two of them")
    cells = [find_cell(place(run), model, data) for run in runs]
    root = out or _name_folder(runs)
    tables = [cell.predictions for cell in cells]
    study = (_open_difference if len(runs) == 2 else _open_study)(root, tables, options, how)
    if _say_before(study) and not how.go_on:
        return
    _serve_study(root, cells[0], study, serving, (how.go_on, display.form))


def _name_folder(runs: list[str]) -> Path:
    """The folder of a study of runs where none is chosen."""
    first, *others = (run.rstrip("/") for run in runs)
    return Path("-".join([first, *(Path(run).name for run in others), "labels"]))


def _say_before(study: Any) -> bool:
    """Says what is known without a label; whether that is enough."""
    from steadyeye.metrics.label_studies.difference_study import DifferenceStudy
    from steadyeye.metrics.label_studies.judge import judge
    from steadyeye.metrics.label_studies.judge_difference import judge_difference
    from steadyeye.metrics.label_studies.model_difference import say_difference, say_possible
    from steadyeye.metrics.label_studies.sentences import say_bound, say_result

    if isinstance(study, DifferenceStudy):
        result = judge_difference(study, {})
        say(say_possible(result.difference))
        if result.enough:
            say(say_difference(result.difference))
        return result.enough
    before = judge(study, {})
    say(say_bound(study))
    if before.enough:
        say(say_result(study, before))
    return before.enough


def _open_study(root: Path, tables: Sequence[Any], options: StudyOptions, how: LabelOptions) -> Any:
    """The study in a folder, begun where there is none; gone on with where there is."""
    from steadyeye.review.studies import study_folder

    (predictions,) = tables
    study = plan_question(predictions, options) if options.asks else None
    if study_folder.is_begun(root):
        return study_folder.resume_study(root, predictions, study)
    if study is None:
        raise UsageError(
            "nothing is asked; give --decide 'pm_k(k=10) >= 70%', --target ±5 or --budget 100"
        )
    study_folder.begin_study(root, study, predictions, _read_labelling(how))
    return study


def _open_difference(
    root: Path, tables: Sequence[Any], options: StudyOptions, how: LabelOptions
) -> Any:
    """The study of two models in a folder, begun there or gone on with as `_open_study` does."""
    from steadyeye.review.studies import study_folder

    first, second = tables
    if study_folder.is_begun(root):
        planned = _plan_difference(first, second, options) if options.asks else None
        return study_folder.resume_difference(root, (first, second), planned)
    study = _plan_difference(first, second, options)
    study_folder.begin_study(root, study, first, _read_labelling(how), second)
    return study


def _read_labelling(how: LabelOptions) -> Any:
    from steadyeye.review.studies import study_folder

    gold = study_folder.read_gold(how.gold) if how.gold else {}
    return study_folder.Labelling(how.votes, gold)


def _plan_difference(first: Any, second: Any, options: StudyOptions) -> Any:
    """The study that the options ask for of two runs. Raises `UsageError` as `plan_question`."""
    from steadyeye.metrics.label_studies.difference_study import plan_difference
    from steadyeye.metrics.label_studies.question import parse_question
    from steadyeye.metrics.label_studies.study import StopRule, parse_premise

    if options.strata:
        raise UsageError(
            f"--strata {options.strata} does not go with two runs, of which the order is uniform; "
            "leave it out"
        )
    if options.decide is not None:
        raise UsageError(
            f"--decide '{options.decide}' is about one run, and of two runs it is decided which "
            "has the better pm-k; leave it out, or give --metric 'pm_k(k=10)'"
        )
    return plan_difference(
        first,
        second,
        parse_question(options.metric or "pm_k"),
        parse_premise(options.premise) if options.premise else None,
        seed=options.seed,
        stop=StopRule(options.budget, read_half_width(options.target) if options.target else None),
    )


def plan_question(predictions: Any, options: StudyOptions) -> Any:
    """The study that the options ask for. Raises `UsageError` where they do not go together."""
    from steadyeye.metrics.label_studies.question import parse_question
    from steadyeye.metrics.label_studies.study import StopRule, parse_premise, plan_study

    if options.decide and (options.metric or options.target):
        raise UsageError("--decide stops by itself; leave --metric and --target out")
    question = parse_question(options.decide or options.metric or "pm_k")
    if options.decide and question.share is None:
        raise UsageError(f"--decide '{options.decide}' has no number; write 'pm_k(k=10) >= 70%'")
    if options.metric and question.share is not None:
        raise UsageError(f"--metric '{options.metric}' has a number; give it as --decide")
    target = read_half_width(options.target) if options.target else None
    return plan_study(
        predictions,
        question,
        parse_premise(options.premise) if options.premise else None,
        seed=options.seed,
        strata=options.strata,
        stop=StopRule(options.budget, target),
    )


def read_half_width(text: str) -> float:
    """The half-width of an interval as people write it, `±5`, as a share: 0.05.

    Raises `UsageError` for what is no number of percentage points above 0 and up to 50.
    """
    bare = text.strip().lstrip("±").removeprefix("+-").removesuffix("pp").removesuffix("%").strip()
    try:
        points = float(bare)
    except ValueError:
        points = 0.0
    if not 0 < points <= 50:
        raise UsageError(f"--target '{text}' is no width; give percentage points, such as ±5")
    return points / 100


def _serve_study(
    root: Path, cell: Any, study: Any, serving: ServeOptions, how: tuple[bool, str]
) -> None:
    """Serves a study until it is stopped; `how`: whether to ask on, and the form of progress."""
    from steadyeye.review.protocol.stages import read_plan
    from steadyeye.review.studies.film_strips import SetFrames
    from steadyeye.review.studies.live_study import LiveStudy
    from steadyeye.review.studies.study_folder import read_folder
    from steadyeye.review.studies.study_items import StudyItems

    folder, _ = read_folder(root)
    go_on, form = how
    frames = SetFrames(cell.predictions, cell.open_source(), study.question.k or 0)
    stop = threading.Event()

    def begin(database: Any) -> Any:
        plan = read_plan(folder.content)
        names = folder.class_names
        items = StudyItems(root, database, frames, plan, study.candidates, names, study.scenes)
        with watching(form) as watcher:
            items.begin(FIRST, watcher.begin)
        threading.Thread(target=items.keep_ahead, args=[stop], daemon=True).start()
        return LiveStudy(study, items, go_on)

    try:
        serve(folder, serving, begin)
    finally:
        stop.set()
