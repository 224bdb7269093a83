"""What `compare` and `gate` do: call the library, print what came out."""

from collections.abc import Sequence
from dataclasses import dataclass

import typer

from steadyeye.cli.run_work import NUMBERS, number_cells, reports
from steadyeye.cli.terminal import say, show, show_table
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import place
from steadyeye.report.comparison.leaderboards import Boards
from steadyeye.report.comparison.wording import finding, name_metric, rank

MARKS = {True: "✓", False: "✗"}


@dataclass(frozen=True)
class GateOptions:
    """What `gate` was asked: requirements, metrics and the largest drop, each as it was typed."""

    require: Sequence[str]
    metrics: str | None
    max_drop: str | None
    least: int


def compare(runs: Sequence[str], out: str, formats: str, metrics: str | None) -> None:
    """`steadyeye compare`."""
    from steadyeye.report import build, compare
    from steadyeye.runner import data_changes

    files, folders = reports(out, formats), [place(run) for run in runs]
    build.check_formats(files)
    models = compare.group_shared(folders, metrics)
    found = compare.rank_models(models)
    for line in data_changes.notes(folders):
        say(line)
    for each in found:
        _print(each, len(found) > 1)
    build.save(compare.document(found, folders, models), folders, files)
    for file in files:
        show(f"report: {file.resolve()}")


def gate(
    run: str, against: str | None, asked: GateOptions, junit: str | None, github: bool
) -> bool:
    """`steadyeye gate`; returns whether everything that is required holds."""
    from steadyeye.core.storage.files import write_file
    from steadyeye.report.gate import ci_formats
    from steadyeye.report.gate.gate import HOLDS
    from steadyeye.report.gate.gate import gate as judge
    from steadyeye.report.gate.requirements import requirements, tolerance
    from steadyeye.runner import data_changes
    from steadyeye.runner.collect import tables

    required = requirements(asked.require)
    allowed = tolerance(required, asked.metrics, asked.max_drop, against is not None)
    cells = [table for _, table in tables([place(run)])]
    base = [table for _, table in tables([place(against)])] if against else []
    verdicts = judge(cells, required, base, allowed, asked.least)
    for line in data_changes.notes([place(each) for each in (run, against) if each]):
        say(line)
    for verdict in verdicts:
        say(f"{MARKS[verdict.outcome == HOLDS]} {verdict.sentence}")
        say(f"  {verdict.method}", style="dim")
    if github:
        for verdict in verdicts:
            typer.echo(ci_formats.github(verdict))
    if junit is not None:
        file = place(junit)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, ci_formats.junit(verdicts))
    held = sum(verdict.outcome == HOLDS for verdict in verdicts)
    show(f"{held} of {len(verdicts)} hold")
    return held == len(verdicts)


def _print(found: Boards, several: bool) -> None:
    """The leaderboards of one of the data, and which pairs are told apart."""
    if several:
        show(found.data, style="bold")
    for board in found.boards:
        rows = [
            (*number_cells(each.result), rank(board, at), each.model)
            for at, each in enumerate(board.standings)
        ]
        columns = (*NUMBERS, "rank", "model")
        show_table(columns, rows, len(NUMBERS) + 1, heading=name_metric(board.metric))
    show("")
    for line in found.unlike:
        say(line)
    for board in found.boards:
        say(finding(board))
    if found.left_out:
        say(f"{number_of(found.left_out, 'sample')} left out: not predicted by every model")
    if found.one_video:
        say("All of this holds within this one video only.")
