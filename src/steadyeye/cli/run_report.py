"""The report of a run from the command line: its files, its numbers, experiment trackers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from steadyeye.cli.terminal import say, show, show_numbers
from steadyeye.core.storage.files import Place, place

if TYPE_CHECKING:
    from steadyeye.core.types import Source
    from steadyeye.report.render.document import Document


def report_files(out: str, formats: str) -> list[Place]:
    """The requested files: `out`, or one per format next to it."""
    names = [name.strip() for name in formats.split(",") if name.strip()]
    to = place(out)
    return [to.with_suffix(f".{name}") for name in names] if names else [to]


def check_trackers(trackers: Sequence[str] | None) -> None:
    """Raises `UsageError` for a tracker that cannot take a run, before anything is computed."""
    if trackers:
        from steadyeye.report import experiment_logs

        experiment_logs.check_trackers(trackers)


def store_report(out: Place, sources: Sequence["Source"]) -> "Document":
    """The report of a run, written into its folder with the pictures that it shows."""
    from steadyeye.report import build

    content = build.document([out])
    build.store_pictures(out, sources, content)
    build.save(content, [out], [out / f for f in ("report.html", "results.json", "results.csv")])
    return content


def show_report(out: Place) -> None:
    """Prints where the report of a run is."""
    show(f"report: {(out / 'report.html').resolve()}")


def finish_run(out: Place, sources: Sequence["Source"], trackers: Sequence[str] = ()) -> None:
    """Writes the report of a run, prints its numbers, and logs it to `trackers`."""
    content = store_report(out, sources)
    for line in content.headline:
        say(line)
    for evaluated in content.evaluated:
        show_numbers(evaluated)
    for line in (*content.warnings, *content.caveats):
        say(line)
    show_report(out)
    if trackers:
        from steadyeye.report import experiment_logs

        record = content.provenance[str(out)]
        for line in experiment_logs.log_run(out, content.evaluated, record, trackers):
            show(line)
