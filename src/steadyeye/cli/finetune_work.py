"""What `finetune` does: check, train, print what came of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyeye.cli.progress import watching
from steadyeye.cli.work import console
from steadyeye.core import plugins


def finetune(job_file: Path | None, flags: Mapping[str, Any], shown: str) -> None:
    """`steadyeye finetune`; `shown`: how its progress is."""
    try:
        from steadyeye.evaluation import finetuning, gains, trained, tuning
        from steadyeye.training.engine import first
    except ModuleNotFoundError as error:
        raise plugins.not_installed("finetune", error, "train") from error
    # of several processes that train together one speaks
    progress = watching(shown if first() else "none")
    job = tuning.read(job_file, flags)
    with progress as watcher:
        plan = finetuning.check(job)
        watcher.say(finetuning.announcement(plan))
        done = finetuning.finetune(plan, watcher)
    if not first():
        return
    console.print(trained.sentence(done.record, done.history, done.beside), markup=False)
    console.print(f"ended: {done.history.ended}", markup=False)
    console.print(f"report: {(done.out / 'report.html').resolve()}", markup=False)
    if done.gains is not None:
        for line in gains.findings(done.gains):
            console.print(line, markup=False)
        report = (done.out / finetuning.THEN / "report.html").resolve()
        console.print(f"before and after: {report}", markup=False)
        return
    console.print(
        f"next: steadyeye run --model \"torch(path='{done.out}')\" --data …", markup=False
    )
