"""The command that proposes labels for review from steady objects."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steadyeye.cli.options import command
from steadyeye.cli.terminal import say, show
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of

if TYPE_CHECKING:
    from steadyeye.core.predictions import Predictions
    from steadyeye.core.storage.files import Place


@command()
def propose(
    run: Annotated[str, typer.Argument(help="Folder of a run of a detector on whole videos.")],
    out: Annotated[Path, typer.Option(help="JSON sidecar to write: the labels of each video.")] = (
        Path("proposed.json")
    ),
    seconds: Annotated[
        float, typer.Option(help="Minimum time in seconds from an object's first to last frame.")
    ] = 1.0,
    sure: Annotated[
        float, typer.Option(help="Minimum mean score of an object, above 0 and at most 1.")
    ] = 0.7,
) -> None:
    """Propose labels for `sample --labels` from objects that a detector follows in one class.

    An object counts if the detector loses it in at most 5 % of its frames. People confirm the
    labels: every anchor, and its neighbours in bulk (`review-audit`).
    """
    import json

    from steadyeye.core.storage.files import place, write_output
    from steadyeye.metrics.sequences.label_proposals import list_ranges, propose_labels
    from steadyeye.runner.collect import tables

    run_tables = tables([place(run)])
    _check_distinct_videos(run, run_tables)
    proposals = [
        proposal for _, table in run_tables for proposal in propose_labels(table, seconds, sure)
    ]
    if not proposals:
        raise UsageError(
            f"no object of '{run}' is followed for {seconds:g} s with a mean score of {sure:g}; "
            "lower --seconds or --sure"
        )
    ranges = list_ranges(proposals)
    content = {
        "classes": dict.fromkeys(sorted({proposal.label for proposal in proposals})),
        "videos": {
            video: {"labels": [{"first": a, "last": b, "labels": c} for a, b, c in parts]}
            for video, parts in ranges.items()
        },
    }
    write_output(out, json.dumps(content, indent=1, ensure_ascii=False).encode())
    total = sum(last - first + 1 for parts in ranges.values() for first, last, _ in parts)
    frames = sum(len(table) for _, table in run_tables)
    say(
        f"{number_of(len(proposals), 'object')} of {number_of(len(ranges), 'video')}: labels for "
        f"{number_of(total, 'frame')}; {frames:,} frames were predicted"
    )
    show(str(out))


def _check_distinct_videos(run: str, run_tables: "Sequence[tuple[Place, Predictions]]") -> None:
    """Raises `UsageError` where two tables have a video of one name: labels would be joined."""
    times = Counter(video for _, table in run_tables for video in table.clusters[0].tolist())
    repeated = [video for video, count in times.items() if count > 1]
    if repeated:
        raise UsageError(
            f"'{repeated[0]}' of '{run}' was predicted by several detectors, or two of its data "
            "sets have a video of that name; give a run of one detector on one data set"
        )
