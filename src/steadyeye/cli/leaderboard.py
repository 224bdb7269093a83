"""The command that writes a leaderboard of many models on many data sets."""

from typing import Annotated

import typer

from steadyeye.cli.options import ReportMetrics, command, join_options
from steadyeye.cli.terminal import say, show
from steadyeye.core.storage.files import place


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
