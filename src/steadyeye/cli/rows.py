"""The command that writes the rows of runs for other tools."""

from pathlib import Path
from typing import Annotated

import typer

from steadyeye.cli.options import command
from steadyeye.cli.terminal import say, show
from steadyeye.core.format import number_of


@command()
def rows(
    runs: Annotated[list[str], typer.Argument(help="The folders of finished runs.")],
    out: Annotated[Path, typer.Option(help="The table to write: .parquet, .arrow or .csv.")] = Path(
        "rows.parquet"
    ),
) -> None:
    """Write the rows of runs, one a sample: labels, prediction, tags, boxes; for other tools."""
    from steadyeye.core.storage.files import place, write_output
    from steadyeye.predictions.sample_rows import build_table, encode_rows, join_tables
    from steadyeye.runner.collect import tables

    read = [predictions for _, predictions in tables([place(run) for run in runs])]
    table = join_tables([build_table(predictions) for predictions in read])
    write_output(out, encode_rows(table, out.suffix.lower()))
    columns = number_of(table.num_columns, "column")
    say(f"{number_of(table.num_rows, 'row')} of {columns}")
    show(str(out))
