"""What `finetune` does: check, train, print what came of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyeye.cli.progress import watching
from steadyeye.cli.terminal import say, show
from steadyeye.core import plugins


def finetune(job_file: Path | None, flags: Mapping[str, Any], shown: str) -> None:
    """`steadyeye finetune`; `shown`: how its progress is."""
    try:
        from steadyeye.training import before_after, run
        from steadyeye.training import job as training_job
        from steadyeye.training import report as training_report
        from steadyeye.training.engine import first
    except ModuleNotFoundError as error:
        raise plugins.not_installed("finetune", error, "train") from error
    # of several processes that train together one speaks
    progress = watching(shown if first() else "none")
    job = training_job.read(job_file, flags)
    with progress as watcher:
        plan = run.check(job)
        watcher.say(run.announcement(plan))
        done = run.finetune(plan, watcher)
    if not first():
        return
    say("\n".join(training_report.summarize(done.record, done.history, done.beside)))
    say(f"ended: {done.history.ended}")
    show(f"report: {(done.out / 'report.html').resolve()}")
    if done.gains is not None:
        for line in before_after.findings(done.gains):
            say(line)
        report = (done.out / run.THEN / "report.html").resolve()
        show(f"before and after: {report}")
        return
    show(f"next: steadyeye run --model \"torch(path='{done.out}')\" --data …")
