"""The image pass: frames measured, and every neighbour against its anchor, beside a run.

Once a source, whatever the number of models: in measurements/SOURCE of the run's folder, a cell
whose shards hold whole pm-sets.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import cv2

from steadyeye.core import plugins
from steadyeye.core.code_permission import distrust
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.spec import parse
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.run_lock import Check, hold_run
from steadyeye.core.types import Source
from steadyeye.metrics.covariates import pm_set_measures
from steadyeye.metrics.covariates.measures import COLUMNS
from steadyeye.metrics.covariates.pm_set_measures import measure_set
from steadyeye.predictions.covariate_table import folder_of, to_arrow
from steadyeye.predictions.json_record import read_content
from steadyeye.predictions.read import cells, read
from steadyeye.predictions.shard_store import open_cell, seal, write_table
from steadyeye.runner import data_changes, threads
from steadyeye.runner.run import Watcher, begin_cell, log
from steadyeye.runner.threads import WorkerThread
from steadyeye.runner.validate import present

SETS = 16  # pm-sets a shard, at most


@dataclass(frozen=True, eq=False)
class Footage:
    """A source of a run with its sealed rows. `sets`: rows of each pm-set, the anchor's first."""

    source: Source
    predictions: Predictions
    sets: Sequence[Sequence[int]]


def measure(
    run: Place, watcher: Watcher, workers: int = 0, sources: Sequence[Source] = ()
) -> tuple[Footage, ...]:
    """Measures the pm-sets of a run that are not measured yet; returns what they are of.

    `sources`: those at hand; the others are built from the specs in the run. Raises `UsageError`
    where the run is not complete or has no pm-sets, and where a source is not what was evaluated.
    """
    measured = footage(run, sources)
    with hold_run(run) as check_held, _one_thread():
        for source in measured:
            _complete(run, source, check_held, watcher, workers)
    return measured


def footage(run: Place, sources: Sequence[Source] = ()) -> tuple[Footage, ...]:
    """The sources of a run that hold pm-sets, once each."""
    at_hand = {source.fingerprint: source for source in sources}
    by_fingerprint: dict[str, Footage] = {}
    for folders in cells(run):
        identity = open_cell(folders[0]).identity
        data = identity["data"]
        if data["fingerprint"] in by_fingerprint or "sweep" in identity:
            continue
        if not {"group", "offset"} <= set(data["columns"]):
            continue
        table = read(*folders)
        source = at_hand.get(data["fingerprint"]) or rebuilt(run, data)
        data_changes.refuse_changed(run, data)
        present(data["spec"], source)
        by_fingerprint[data["fingerprint"]] = Footage(source, table, _sets(table))
    if not by_fingerprint:
        raise UsageError(f"'{run}' has no sets to measure; run on video(…) or frames(…)")
    return tuple(by_fingerprint.values())


def is_of_python(data: Mapping[str, str]) -> bool:
    """Whether a cell is of data of Python, which have a name in place of the spec of a source."""
    return not plugins.exists("sources", data["spec"].partition("(")[0].strip())


def rebuilt(run: Place, data: Mapping[str, str]) -> Source:
    """The source of a sealed cell, from what its identity says of the data.

    Raises `UsageError` where it cannot be opened, or is not what was evaluated, and for code that
    the user has not named.
    """
    if is_of_python(data):
        raise UsageError(
            f"no source named '{data['spec']}': data of Python, which no later command can open, "
            "or a plugin that is missing; save the data as files and run on these"
        )
    try:
        with distrust(run):
            source: Source = plugins.build("sources", parse(data["spec"]))
    except UsageError as error:
        hint = (
            "relative paths start from the folder in which the run was started: run the command "
            "there"
        )
        raise UsageError(f"cannot open '{data['spec']}' again: {error}; {hint}") from error
    if source.fingerprint != data["fingerprint"]:
        raise UsageError(
            f"'{data['spec']}' changed since the run: its fingerprint is {source.fingerprint}, "
            f"not {data['fingerprint']}; restore the data or run again"
        )
    return source


def _sets(table: Predictions) -> tuple[tuple[int, ...], ...]:
    """The rows of each set in the order of the source, its anchor's put first."""
    offsets = table.tags["offset"]
    members: dict[str, list[int]] = {}
    for row, group in enumerate(table.groups):
        members.setdefault(str(group), []).append(row)
    return tuple(
        tuple(sorted(rows, key=lambda row: (offsets[row] != 0, row))) for rows in members.values()
    )


def _complete(
    run: Place, footage: Footage, check_held: Check | None, watcher: Watcher, workers: int
) -> None:
    data, sets = footage.predictions, footage.sets
    size = min(max(len(sets) // 64, 1), SETS)
    identity = {
        "data": {"name": data.data, "fingerprint": data.fingerprint},
        "measures": sorted(COLUMNS),
        "flow": {"side": pm_set_measures.SIDE, "finest": pm_set_measures.FINEST},
        "frames": len(data),
        "rows": len(sets),
        "shard_rows": size,
    }
    folder = folder_of(run, data.data, data.fingerprint)
    path = folder / "cell.json"
    if path.is_file() and read_content(path) not in (None, identity):
        raise UsageError(f"'{folder}' was measured by another version; delete it and measure again")
    cell = begin_cell(run, folder, identity, watcher)
    finished = cell.list_finished()
    if finished:
        watcher.report_resumed(cell.folder.name, len(finished), cell.shards)
    advance = watcher.begin(f"measuring {data.data}", len(data))
    advance(sum(len(sets[i]) for shard in finished for i in cell.span(shard)))
    started = time.perf_counter()

    def work(shard: int, worker: WorkerThread) -> None:
        rows = []
        for number in cell.span(shard):
            if worker.stopped():
                return
            if check_held:
                check_held()
            samples = (footage.source[row] for row in sets[number])
            rows += measure_set(samples)
            advance(len(sets[number]))
        write_table(cell, shard, to_arrow(rows))

    threads.share(cell, work, workers)
    seal(cell)
    seconds = round(time.perf_counter() - started, 3)
    log(run, "measured", cell=cell.folder.name, found=len(finished), seconds=seconds)


@contextmanager
def _one_thread() -> Iterator[None]:
    """OpenCV with one thread a caller: its optical flow depends on their number."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)
