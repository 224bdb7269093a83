"""The commands that read finished runs: measure their frames, compare, rank and gate models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from steadyeye.cli.options import (
    Formats,
    ProgressOptions,
    ReportFile,
    ReportMetrics,
    Runs,
    Workers,
    check_suffix,
    command,
    join_options,
)
from steadyeye.cli.progress import watching
from steadyeye.cli.run_report import report_files, show_report, store_report
from steadyeye.cli.terminal import NUMBERS, number_cells, say, show, show_table
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import place

if TYPE_CHECKING:
    from steadyeye.report.comparison.leaderboards import Boards
    from steadyeye.report.gate_verdict import GateVerdict

MARKS = {True: "✓", False: "✗"}


@command()
def measure(
    *,
    runs: Runs,
    workers: Workers = None,
    display: ProgressOptions,
) -> None:
    """Measure motion, blur and brightness of the frames of runs. Resumes like `run`."""
    from steadyeye.runner.measure import measure as complete

    for run in map(place, runs):
        with watching(display.form) as watcher:
            measured = complete(run, watcher, workers or 0)
        store_report(run, [cell.source for cell in measured])
        for cell in measured:
            frames = len(cell.predictions.ids)
            sets = number_of(len(cell.sets), "set")
            say(f"{cell.source.name}: {number_of(frames, 'frame')} of {sets} measured")
        show_report(run)


@command()
def compare(
    runs: Annotated[list[str], typer.Argument(help="Folders of finished runs on the same data.")],
    out: ReportFile = "compare.html",
    formats: Formats = "",
    metrics: ReportMetrics = None,
    original: Annotated[
        str | None,
        typer.Option(
            help="Name of the model that the others are deployed forms of, to say what each costs."
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            help="Folder of labels of a few sets, as `steadyeye review-export` writes it, to print "
            "the difference of two runs; may be given twice."
        ),
    ] = None,
) -> None:
    """Compare models on the same samples: paired differences and ranks."""
    if labels:
        _compare_by_labels(runs, labels, metrics, original)
        return
    from steadyeye.report import build, compare
    from steadyeye.runner import data_changes

    files, folders = report_files(out, formats), [place(run) for run in runs]
    build.check_formats(files)
    specs = join_options(metrics)
    models = compare.group_shared(folders, specs)
    boards = compare.rank_models(models)
    costs = compare.describe_costs(models, original) if original else []
    for line in (*data_changes.notes(folders), *costs, *compare.list_unranked(specs)):
        say(line)
    for boards_of_data in boards:
        _print_boards(boards_of_data, len(boards) > 1)
    options = {"metrics": specs, "original": original, "out": out, "format": formats}
    content = compare.document(boards, folders, models, costs)
    build.save(compare.add_command(content, folders, options), folders, files)
    for file in files:
        show(f"report: {file.resolve()}")


def _compare_by_labels(
    runs: list[str], labels: list[str], metrics: list[str] | None, original: str | None
) -> None:
    """Prints the difference of two runs, estimated from the labels of a few sets."""
    from steadyeye.core.spec import split
    from steadyeye.metrics.label_studies.model_difference import say_difference, say_next_sets
    from steadyeye.report.label_verdicts import compare_by_labels
    from steadyeye.runner import data_changes
    from steadyeye.runner.collect import tables

    specs = split(join_options(metrics) or "")
    if original is not None or len(specs) > 1:
        surplus = "--original" if original is not None else "a second metric"
        raise UsageError(f"{surplus} does not go with --labels; leave it out")
    folders = [place(run) for run in runs]
    cells = tables(folders)
    by_run = [[table for run, table in cells if run == folder] for folder in folders]
    difference = compare_by_labels(by_run, list(map(place, labels)), "".join(map(str, specs)))
    for line in (*data_changes.notes(folders), *difference.notes):
        say(line)
    say(say_difference(difference))
    say(f"  {difference.method}", style="dim")
    if line := say_next_sets(difference):
        say(line)


@dataclass(frozen=True)
class FewLabelOptions:
    """Options for a gate on a run without labels."""

    labels: Annotated[
        str | None,
        typer.Option(
            help="Folder of labels of a few sets, as `steadyeye review-export` writes it, to judge "
            "the run by."
        ),
    ] = None
    premise: Annotated[
        str | None,
        typer.Option(
            help="Assumption on data without labels: constant-class (each set shows one class) or "
            "scene-class (all sets of a scene do)."
        ),
    ] = None


@dataclass(frozen=True)
class VerdictOptions:
    """Files that the verdicts of a gate are written to, besides the terminal."""

    junit: Annotated[str | None, typer.Option(help="JUnit XML file to write: .xml.")] = None
    openmetrics: Annotated[
        str | None, typer.Option(help="OpenMetrics file to write, for Prometheus: .txt or .prom.")
    ] = None
    github: Annotated[
        bool, typer.Option("--github", help="Print annotations for GitHub Actions.")
    ] = False

    def check(self) -> None:
        """Raises `UsageError` for a file with another suffix, which would be overwritten."""
        check_suffix(self.junit, "JUnit XML", (".xml",))
        check_suffix(self.openmetrics, "OpenMetrics", (".txt", ".prom"))


GateMetrics = Annotated[
    list[str] | None,
    typer.Option(
        help="Metrics to compare with the base; default: those of --require; may be repeated."
    ),
]
SmallestN = Annotated[
    int, typer.Option("--min", min=0, help="Smallest n with which a requirement can hold.")
]


@command()
def gate(
    run: Annotated[str, typer.Argument(help="Folder of a finished run.")],
    require: Annotated[
        list[str] | None,
        typer.Option(help="Requirement, e.g. 'pm_k(k=10) >= 70%'; may be repeated."),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Folder of a base run on the same data, to compare with.")
    ] = None,
    max_drop: Annotated[
        str | None, typer.Option(help="Largest allowed drop from the base, e.g. 2% or 0.02.")
    ] = None,
    metrics: GateMetrics = None,
    least: SmallestN = 0,
    *,
    few: FewLabelOptions,
    outputs: VerdictOptions,
) -> None:
    """Exit with 1 unless the 95 % interval meets every requirement."""
    from steadyeye.report.gate import gate as judge
    from steadyeye.report.gate import requirements, tolerance
    from steadyeye.report.gate_verdict import HOLDS
    from steadyeye.report.label_verdicts import judge_labels
    from steadyeye.runner import data_changes
    from steadyeye.runner.collect import tables

    outputs.check()
    required = requirements(require or ())
    options = (join_options(metrics), max_drop, against is not None)
    by_labels_alone = few.labels is not None and not (required or any(options))
    allowed = None if by_labels_alone else tolerance(required, *options)
    cells = [table for _, table in tables([place(run)])]
    base = [table for _, table in tables([place(against)])] if against else []
    verdicts = list(judge(cells, required, base, allowed, least, few.premise))
    if few.labels is not None:
        verdicts.append(judge_labels(cells, place(few.labels), least))
    for line in data_changes.notes([place(folder) for folder in (run, against) if folder]):
        say(line)
    _print_verdicts(verdicts, outputs)
    holding = sum(verdict.outcome == HOLDS for verdict in verdicts)
    show(f"{holding} of {len(verdicts)} hold")
    if holding < len(verdicts):
        raise typer.Exit(1)


def _print_verdicts(verdicts: Sequence["GateVerdict"], outputs: VerdictOptions) -> None:
    """Prints the verdicts of a gate, and writes them to the requested files."""
    from steadyeye.core.storage.files import write_output
    from steadyeye.report import gate, gate_verdict
    from steadyeye.report.gate_verdict import HOLDS

    for verdict in verdicts:
        say(f"{MARKS[verdict.outcome == HOLDS]} {verdict.sentence}")
        say(f"  {verdict.method}", style="dim")
        if verdict.about_videos:
            say(f"  {verdict.about_videos}", style="dim")
    if outputs.github:
        for verdict in verdicts:
            typer.echo(gate.github(verdict))
    if outputs.junit is not None:
        write_output(place(outputs.junit), gate.junit(verdicts))
    if outputs.openmetrics is not None:
        write_output(place(outputs.openmetrics), gate_verdict.write_metrics(verdicts).encode())


def _print_boards(boards: "Boards", several: bool) -> None:
    """Prints the leaderboards of one data set, and the pairs with a clear difference."""
    from steadyeye.report.comparison.leaderboards import finding, rank
    from steadyeye.report.comparison.metric_wording import name_metric

    if several:
        show(boards.data, style="bold")
    for board in boards.boards:
        say(finding(board))
    for line in boards.unlike:
        say(line)
    if boards.left_out:
        say(f"{number_of(boards.left_out, 'sample')} left out: not predicted by every model")
    if boards.one_video:
        say("These results hold within this one video only.")
    for board in boards.boards:
        rows = [
            (*number_cells(standing.result), rank(board, at), standing.model)
            for at, standing in enumerate(board.standings)
        ]
        columns = (*NUMBERS, "rank", "model")
        show_table(columns, rows, len(NUMBERS) + 1, heading=name_metric(board.metric))


@command()
def leaderboard(
    runs: Annotated[
        list[str], typer.Argument(help="Folders of finished runs: several models on the same data.")
    ],
    out: Annotated[str, typer.Option(help="Folder to write.")] = "leaderboard",
    metrics: ReportMetrics = None,
) -> None:
    """Write a leaderboard of models on data sets: a page that opens offline, cards, tables."""
    from steadyeye.report.compare import list_unranked
    from steadyeye.report.leaderboard_files import check_folder, write_site
    from steadyeye.report.leaderboard_site import build_site
    from steadyeye.runner import data_changes

    folders = [place(run) for run in runs]
    check_folder(place(out))
    site = build_site(folders, join_options(metrics))
    unranked = list_unranked(join_options(metrics))
    for line in (*data_changes.notes(folders), *site.findings, *unranked):
        say(line)
    for file in write_site(site, place(out)):
        show(f"{file.name}: {file.resolve()}")
