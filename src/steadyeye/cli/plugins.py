"""The commands that list, check and match: `ls`, `check-plugin` and `classmap`."""

from enum import StrEnum
from typing import Annotated

import typer

from steadyeye.cli.options import command
from steadyeye.cli.terminal import console, say, show
from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import place


class Kind(StrEnum):
    """What `steadyeye ls` lists."""

    models = "models"
    sources = "sources"
    metrics = "metrics"
    analyses = "analyses"
    operators = "operators"
    probes = "probes"


@command()
def ls(kind: Annotated[Kind, typer.Argument(help="What to list.")]) -> None:
    """List models, sources, metrics, analyses, operators or probes."""
    from steadyeye.core import plugins

    described = plugins.describe(kind.value)
    longest = max(map(len, described), default=0)
    for name, line in described.items():
        say(f"{name:<{longest}}  {line}", hang=longest + 2)


@command("check-plugin")
def check_plugin(
    kind: Annotated[Kind, typer.Argument(help="Kind of the plugin.")],
    plugin: Annotated[
        str,
        typer.Argument(
            help="Name of the plugin, or path/to/file.py:name, with arguments if it has any."
        ),
    ],
    of_run: Annotated[
        str | None,
        typer.Option(
            "--run",
            help="Folder of a run to try a metric or an analysis on; default: made-up rows.",
        ),
    ] = None,
) -> None:
    """Check a plugin of your own with the tests that all plugins of its kind pass."""
    from steadyeye import testing
    from steadyeye.core import plugins
    from steadyeye.core.spec import parse
    from steadyeye.runner.collect import tables

    columns = plugins.declaration(kind.value, parse(plugin).name).columns or ()
    cells = [table for _, table in tables([place(of_run)])] if of_run else [None]
    # of an explanation the cells of probes have further columns
    table = next((t for t in cells if t and set(columns) <= {*t.columns}), cells[0])
    try:
        show(f"{kind} {plugin}: holds. Checked {testing.check_plugin(kind.value, plugin, table)}")
    except testing.ContractError as error:
        raise UsageError(f"{kind} {plugin}: {error}") from error


@command()
def classmap(
    source: Annotated[
        str,
        typer.Option("--from", help="Classes of the model: a known list (imagenet1k) or a file."),
    ],
    target: Annotated[
        str, typer.Option("--to", help="Classes of the data: a known list (vid30) or a file.")
    ],
) -> None:
    """Print a class map (model → data) as CSV, to edit and use as --class-map."""
    from steadyeye.data.classes.class_lists import read
    from steadyeye.data.classes.class_mapping import by_meaning
    from steadyeye.data.classes.map_file import to_csv

    console.print(to_csv(by_meaning(read(source), read(target))), markup=False, end="")
