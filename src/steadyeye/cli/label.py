"""The command that asks people for the labels that a question needs, and no more."""

import threading
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
CheckPremise = Annotated[
    int | None,
    typer.Option(
        help="Ask about so many sets that need no label, too, to check constant-class.", min=1
    ),
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
    check_premise: CheckPremise = None
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
    run: Annotated[str, typer.Argument(help="Folder of a run on videos.")],
    options: StudyOptions,
    how: LabelOptions,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the study; default: RUN-labels.")
    ] = None,
    model: ModelName = None,
    data: DataName = None,
    serving: ServeOptions,
    display: ProgressOptions,
) -> None:
    """Ask people for the labels that answer a question about a run, and for no more.

    Serves the sets in the browser, to several people at once, and prints a private link each.
    """
    check_installed()
    from steadyeye.metrics.label_studies.judge import judge
    from steadyeye.metrics.label_studies.premise_sentences import say_premise
    from steadyeye.metrics.label_studies.sentences import say_bound, say_result
    from steadyeye.review.studies.run_cell import find_cell

    cell = find_cell(place(run), model, data)
    root = out or Path(f"{run.rstrip('/')}-labels")
    study = _open_study(root, cell.predictions, options, how)
    before = judge(study, {})
    say(say_bound(study))
    if premise := say_premise(study, before):
        say(premise)
    if before.enough and not how.go_on:
        say(say_result(study, before))
        return
    _serve_study(root, cell, study, serving, (how.go_on, display.form))


def _open_study(root: Path, predictions: Any, options: StudyOptions, how: LabelOptions) -> Any:
    """The study in a folder, begun where there is none; gone on with where there is."""
    from steadyeye.review.studies import study_folder

    begun = study_folder.is_begun(root)
    study = plan_question(predictions, options) if options.asks else None
    if begun:
        return study_folder.resume_study(root, predictions, study)
    if study is None:
        raise UsageError(
            "nothing is asked; give --decide 'pm_k(k=10) >= 70%', --target ±5 or --budget 100"
        )
    gold = study_folder.read_gold(how.gold) if how.gold else {}
    labelling = study_folder.Labelling(how.votes, gold)
    study_folder.begin_study(root, study, predictions, labelling)
    return study


def plan_question(predictions: Any, options: StudyOptions) -> Any:
    """The study that the options ask for. Raises `UsageError` where they do not go together."""
    from steadyeye.metrics.label_studies.question import parse_question
    from steadyeye.metrics.label_studies.study import (
        CONSTANT_CLASS,
        StopRule,
        parse_premise,
        plan_study,
    )

    if options.decide and (options.metric or options.target):
        raise UsageError("--decide stops by itself; leave --metric and --target out")
    question = parse_question(options.decide or options.metric or "pm_k")
    if options.decide and question.share is None:
        raise UsageError(f"--decide '{options.decide}' has no number; write 'pm_k(k=10) >= 70%'")
    if options.metric and question.share is not None:
        raise UsageError(f"--metric '{options.metric}' has a number; give it as --decide")
    target = read_half_width(options.target) if options.target else None
    checks = options.check_premise or 0
    premise = options.premise or (CONSTANT_CLASS if checks else None)
    return plan_study(
        predictions,
        question,
        parse_premise(premise, checks) if premise else None,
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
        items = StudyItems(root, database, frames, plan, study.order, names, study.scenes)
        with watching(form) as watcher:
            items.begin(FIRST, watcher.begin)
        threading.Thread(target=items.keep_ahead, args=[stop], daemon=True).start()
        return LiveStudy(study, items, go_on)

    try:
        serve(folder, serving, begin)
    finally:
        stop.set()
