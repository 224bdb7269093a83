"""A base model and one trained from it, measured on the same data: the report before and after.

::

    base/, tuned/                      runs on the data, as `steadyeye run` writes them
    base-degraded/, tuned-degraded/    sweeps, where operators were named
    report.html, results.json, .csv    of all of them
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import Place
from steadyeye.report import build
from steadyeye.report.render.document import Document
from steadyeye.report.sections import sections
from steadyeye.runner.job import Job
from steadyeye.runner.run import Watcher, run
from steadyeye.runner.sweep import metrics, operators
from steadyeye.runner.validate import Plan, check

FILES = ("report.html", "results.json", "results.csv")
THRESHOLDS = "0.9,0.5,0.1"
ANALYSES = ("gains", "degradation_gains")


@dataclass(frozen=True)
class Measuring:
    """On what both models are measured, and how.

    `data`: specs. `operators`: a list of operators whose sweeps are made too, `levels` of them, all
    they have if left out. `class_map`: a file that maps the base's classes to the data's; the tuned
    model answers in those that it was trained on. `seed`: of the operators. `batch`, `workers`,
    `cache` as in a job.
    """

    data: tuple[str, ...]
    operators: str | None = None
    levels: str | None = None
    class_map: str | None = None
    seed: int = 0
    batch: int = 0
    workers: int = 0
    cache: str = ""


def check_base(base: str, how: Measuring) -> None:
    """Raises `UsageError` where the base cannot be measured so: asked before anything is trained.

    `base`: its spec.
    """
    for job in _jobs({"base": base}, how, None).values():
        _check_job("base", job)


def measure(base: str, tuned: Place, how: Measuring, out: Place, watcher: Watcher) -> Document:
    """Measures both models on the data and writes the report into `out`; returns it.

    `base`: a spec; `tuned`: the folder that `finetune` wrote. Stopped, the same call goes on.
    Raises `UsageError` where a model does not fit the data.
    """
    jobs = _jobs({"base": base, "tuned": f"torch(path={str(tuned)!r})"}, how, out)
    # all that can be refused is, before the first of them is run
    plans = {name: _check_job(name, job) for name, job in jobs.items()}
    runs = {name: run(plan, watcher) for name, plan in plans.items()}
    return _report(runs, plans, out)


def findings(content: Document) -> tuple[str, ...]:
    """What a report says of before and after, a line each."""
    return tuple(section.title for section in sections(content.evaluated, ANALYSES))


def _jobs(models: Mapping[str, str], how: Measuring, out: Place | None) -> dict[str, Job]:
    """A job for each model, and one more for its sweep."""
    jobs = {}
    for name, model in models.items():
        plain = Job(
            models=(model,),
            data=how.data,
            out=str(out / name) if out is not None else "-",
            class_map=how.class_map if name == "base" else None,
            seed=how.seed,
            batch=how.batch,
            workers=how.workers,
            cache=how.cache,
        )
        jobs[name] = plain
        if how.operators:
            jobs[f"{name}-degraded"] = _sweep(plain, how)
    return jobs


def _sweep(plain: Job, how: Measuring) -> Job:
    sweep_operators = operators(how.operators or "all", gradients=False)
    every = f"0:{max(operator.last for operator in sweep_operators)}"
    return replace(
        plain,
        operators=how.operators,
        levels=how.levels or every,
        metrics=metrics("right", THRESHOLDS),
        out=plain.out if plain.out == "-" else f"{plain.out}-degraded",
    )


def _check_job(name: str, job: Job) -> Plan:
    try:
        return check(job)
    except UsageError as error:
        model_name = "the base model" if name.startswith("base") else "the fine-tuned model"
        message = str(error).replace("--class-map", "--then-class-map")
        raise UsageError(f"{model_name} cannot be measured: {message}") from error


def _report(runs: Mapping[str, Place], plans: Mapping[str, Plan], out: Place) -> Document:
    folders: Sequence[Place] = list(runs.values())
    content = build.document(folders)
    for name, folder in runs.items():
        sources = [task.source for task in plans[name].tasks]
        build.store_pictures(folder, sources, content)
    build.save(content, folders, [out / file for file in FILES])
    return content
