"""Runs an explanation: the targets of a run, their probes, and the results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from steadyeye.core import plugins
from steadyeye.core.abilities import Adjustable
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.predictions import Predictions
from steadyeye.core.spec import Spec, split
from steadyeye.core.storage.files import Place, place
from steadyeye.core.storage.run_lock import hold_run
from steadyeye.core.types import Detector, Evaluated, Source, read_needs
from steadyeye.explain.context import Probe, ProbeError, Subject, lower_threshold
from steadyeye.explain.mining.causes import SCORE, judge_detections
from steadyeye.explain.mining.error_rates import share_results, shares, summarize
from steadyeye.explain.targets import targets
from steadyeye.predictions.json_record import write_record
from steadyeye.predictions.read import read
from steadyeye.runner.cache.lookup import closing_store, open_configured_store
from steadyeye.runner.cache.store import Store
from steadyeye.runner.collect import record, tables
from steadyeye.runner.infer import attach_cache
from steadyeye.runner.job import Job, read_engine
from steadyeye.runner.run import Cells, Watcher, run
from steadyeye.runner.task import Task, task
from steadyeye.runner.validate import Plan, lacks
from steadyeye.runner.validate import check as check_job


@dataclass(frozen=True, eq=False)
class ExplainSettings:
    """The job, the score above which a detection is confident, and the most targets.

    `store`: the cache of predictions, or None.
    """

    job: Job
    score: float
    limit: int | None
    store: Store | None
    cells: Cells


@dataclass(frozen=True, eq=False)
class ExplainedPair:
    """A model on the data to explain, `base`, and the same model on the reference, if any."""

    asking: ExplainSettings
    base: Task
    reference: Task | None

    def _read(self, task_: Task) -> Predictions:
        return read(place(self.asking.job.out) / "cells" / task_.folder)

    def subject(self) -> Subject:
        """The input of the probes."""
        how, seed = self.asking, self.asking.job.seed
        predictions = self._read(self.base)
        control = self._read(self.reference) if self.reference else None
        chosen_targets = targets(predictions, control, how.score, how.limit, seed)
        model = lower_threshold(self.base.model)  # type: ignore[arg-type]
        source = self.reference.source if self.reference else None
        sealed = partial(self._seal_probe, model)
        arguments = (predictions, source, control, chosen_targets, seed, sealed, how.score)
        return Subject(model, self.base.source, *arguments)

    def run_probe(self, subject: Subject, spec: Spec) -> Task:
        """The task of a probe, after its cell is sealed."""
        plugin: Callable[..., Probe] = plugins.load("probes", spec.name)
        probe = plugin(subject, **spec.kwargs)
        asked_probe = replace(probe, model=probe.model or subject.model)
        return self._complete(asked_probe, spec.name)

    def _seal_probe(self, model: Detector, name: str, source: Source) -> Predictions:
        return self._read(self._complete(Probe(source, model), name))

    def _complete(self, probe: Probe, name: str) -> Task:
        job, model, source = self.asking.job, probe.model, probe.source
        assert model is not None, "chosen before"
        spec = self.base.identity["model"]["spec"] if model is self.base.model else model.name
        text = f"{name} of {self.base.identity['data']['spec']}"
        probe_task = task(job, (spec, model), (text, source), None)  # type: ignore[arg-type]
        about: dict[str, Any] = {"probe": self._about(source, name)}
        about |= {"shard_rows": probe.shard} if probe.shard else {}
        folder = f"{self.base.folder}+{name}"
        probe_task = replace(probe_task, folder=folder, identity={**probe_task.identity, **about})
        probe_task = attach_cache(probe_task, self.asking.store)
        self.asking.cells.complete(probe_task)
        return probe_task

    def _about(self, source: Source, name: str) -> dict[str, Any]:
        how, reference = self.asking, self.reference
        return {
            "name": name,
            "data": _name_source(self.base.source),
            "reference": _name_source(reference.source) if reference else None,
            "model": self.base.model.name,
            "score": how.score,
            "limit": how.limit,
            "seed": self.asking.job.seed,
            "settings": dict(source.settings) if isinstance(source, Adjustable) else {},
        }

    def summarize(self, several: bool) -> str:
        """The number of mistakes among the confident detections; `several`: of several data."""
        predictions, score = self._read(self.base), self.asking.score
        of = shares(predictions, judge_detections(predictions, score))
        return summarize(predictions, of, score, several)


def _name_source(source: Source) -> dict[str, str]:
    return {"name": source.name, "fingerprint": source.fingerprint}


@dataclass(frozen=True)
class Explaining:
    """The settings of an explanation of the confident mistakes of models on the data of a job.

    `analyses`: a list of specs. `reference`: data of the same job for the control; None: the data
    itself. `score`: threshold of confident detections. `limit`: most mistakes, and most control
    detections.
    """

    analyses: str
    reference: str | None = None
    score: float = SCORE
    limit: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.score < 1:
            raise UsageError(f"--score {self.score:g}: give a confidence in 0…1, such as 0.8")
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"--limit {self.limit}: give at least 1")
        if not split(self.analyses):
            raise UsageError("no analysis given; give --analyses, such as patch_shuffle")


@dataclass(frozen=True, eq=False)
class Explanation:
    """A checked plan; `probes`: the spec of the probe of each analysis, None for one without."""

    plan: Plan
    how: Explaining
    probes: Mapping[str, Spec | None]


@dataclass(frozen=True, eq=False)
class Explained:
    """A finished explanation: its folder, the sources of its pictures, and its messages.

    `score`: threshold of confident detections.
    """

    out: Place
    sources: tuple[Source, ...]
    headline: tuple[str, ...]
    evaluated: tuple[Evaluated, ...]
    analyses: tuple[str, ...]
    score: float


def check(job: Job, how: Explaining) -> Explanation:
    """The checked plan of an explanation; `job.data` includes the reference.

    Raises `UsageError` for unknown analyses and arguments, classifiers, data without boxes, and a
    probe that needs reference data without any.
    """
    specs = split(how.analyses)
    probes = [_probe(spec, how.reference) for spec in specs]
    probe_names = [probe.name for probe in probes if probe]
    if twice := [name for name in probe_names if probe_names.count(name) > 1]:
        raise UsageError(
            f"the probe '{twice[0]}' is given twice; run explain twice, with a different --out each"
        )
    plan = check_job(job, detection_for="explain")
    for spec, probe in zip(specs, probes, strict=True):
        plugin = plugins.load("analyses", spec.name)
        columns = plan.tasks[0].identity["data"]["columns"]
        if probe is None and (missing := lacks(plugin, columns)):
            raise UsageError(
                f"{spec.name} needs {', '.join(missing)}, which its probe does not provide"
            )
    # by the whole text: one analysis may have several probes
    return Explanation(plan, how, dict(zip(map(str, specs), probes, strict=True)))


def explain(explanation: Explanation, watcher: Watcher) -> Explained:
    """Evaluates the data, then every probe of the mistakes; a stopped explanation is resumed.

    If a probe cannot be made, the others are, and the headline gives the reason. Raises
    `UsageError` if no model makes a confident mistake, unless a probe compares the data with the
    reference, if no probe can be made, and if the folder holds another explanation.
    """
    plan, how = explanation.plan, explanation.how
    out = place(plan.job.out)
    before = _before(out, how)
    run(plan, watcher, command="explain")
    sources = {planned.source.fingerprint: planned.source for planned in plan.tasks}
    store = open_configured_store(plan.job.cache)
    engine = read_engine(plan.job.engine, plan.job.address)
    with hold_run(out) as claim, closing_store(store, watcher.say):
        cells = Cells(plan.job, out, engine, claim, watcher)
        explained_pairs = _pairs(explanation, store, cells)
        subjects = [(pair, pair.subject()) for pair in explained_pairs]
        tasks, refusals = _run_probes(subjects, list(filter(None, explanation.probes.values())))
        sources |= {probe_task.source.fingerprint: probe_task.source for probe_task in tasks}
        _write_record(out, how, before, [probe_task.folder for probe_task in tasks])
    several = len({pair.base.source.fingerprint for pair in explained_pairs}) > 1
    return Explained(
        out,
        tuple(sources.values()),
        (*(pair.summarize(several) for pair in explained_pairs), *refusals),
        _list_evaluated(out, plan, how),
        tuple(dict.fromkeys(spec.name for spec in split(how.analyses))),
        how.score,
    )


def _run_probes(
    subjects: Sequence[tuple[ExplainedPair, Subject]], specs: Sequence[Spec]
) -> tuple[list[Task], tuple[str, ...]]:
    """The tasks of all probes, their cells sealed, and a line on each that cannot be made."""
    tasks, refusals = [], []
    # a comparison of the data with the reference does not need a mistake
    comparing = [s for s in specs if "reference" in read_needs(plugins.load("probes", s.name))]
    mistaken = {pair for pair, subject in subjects if any(t.cause for t in subject.targets)}
    if not mistaken and not comparing:
        raise UsageError(
            f"no model makes a mistake with a score above {subjects[0][1].score:g} on this data; "
            "lower --score or give other data"
        )
    for pair, subject in subjects:
        for spec in specs if pair in mistaken else comparing:
            try:
                tasks.append(pair.run_probe(subject, spec))
            except ProbeError as error:
                refusals.append(error)
    if refusals and not tasks:
        raise refusals[0]
    return tasks, tuple(f"Not done: {error}." for error in refusals)


def _probe(spec: Spec, reference: str | None) -> Spec | None:
    """The spec of the probe that an analysis reads; None for one that reads the plain cells."""
    if not plugins.exists("analyses", spec.name):
        raise unknown("analysis", spec.name, plugins.names("analyses"))
    rest = {key: value for key, value in spec.kwargs.items() if key != "probe"}
    name = spec.kwargs.get("probe", spec.name)
    # a path names an analysis; its probe is named by probe='…'
    if "probe" not in spec.kwargs and name not in plugins.names("probes"):
        if rest:
            raise UsageError(
                f"the analysis {spec.name} has no probe of its own; leave out its arguments"
            )
        return None
    probe = Spec(str(name), rest)
    plugin = plugins.load("probes", probe.name)
    plugins.check_arguments(plugin, probe, positional=1)
    if reference is None and "reference" in read_needs(plugin):
        raise UsageError(f"{probe.name} needs reference data; give --reference")
    return probe


def _pairs(explanation: Explanation, store: Store | None, cells: Cells) -> list[ExplainedPair]:
    """Every model on all data to explain, with the same model on the reference."""
    plan, how = explanation.plan, explanation.how
    asking = ExplainSettings(plan.job, how.score, how.limit, store, cells)
    identities = [planned.identity for planned in plan.tasks]
    specs = [(identity["model"]["spec"], identity["data"]["spec"]) for identity in identities]
    task_of = dict(zip(specs, plan.tasks, strict=True))
    return [
        ExplainedPair(asking, planned, task_of[model, how.reference] if how.reference else None)
        for (model, data), planned in task_of.items()
        if data != how.reference
    ]


def _list_evaluated(out: Place, plan: Plan, how: Explaining) -> tuple[Evaluated, ...]:
    """The probes, and the plain cells of the data to explain."""
    reference = {
        planned.source.fingerprint
        for planned in plan.tasks
        if planned.identity["data"]["spec"] == how.reference
    }
    evaluated = []
    for _, table in tables([out]):
        if table.probe:
            evaluated.append(Evaluated(table, {}))
        elif table.fingerprint not in reference:
            of = shares(table, judge_detections(table, how.score))
            evaluated.append(Evaluated(table, share_results(of, len(table.model_classes))))
    return tuple(evaluated)


def _before(out: Place, how: Explaining) -> Mapping[str, Any]:
    """The explanation in the folder: `settings` and sealed `cells`; empty if there is none.

    Raises `UsageError` if it has other targets.
    """
    if not (out / "run.json").is_file():
        return {}
    explained: Mapping[str, Any] = record(out).get("explain", {})
    if not explained:
        return {}
    for key, value in _settings(how).items():
        if key != "analyses" and explained["settings"][key] != value:
            raise UsageError(
                f"'{out}' holds another explanation: its {key} is {explained['settings'][key]!r}, "
                f"not {value!r}; choose another --out"
            )
    sealed = [cell for cell in explained["cells"] if (out / "cells" / cell / "seal.json").is_file()]
    return {**explained, "cells": sealed}


def _settings(how: Explaining) -> dict[str, Any]:
    return {
        "reference": how.reference,
        "analyses": how.analyses,
        "score": how.score,
        "limit": how.limit,
    }


def _write_record(
    out: Place, how: Explaining, before: Mapping[str, Any], probes: Sequence[str]
) -> None:
    """Adds the explanation and its cells to the record of the run."""
    content = dict(record(out))
    analyses = [before["settings"]["analyses"]] if before else []
    specs = [str(spec) for text in (*analyses, how.analyses) for spec in split(text)]
    cells = list(dict.fromkeys([*before.get("cells", []), *probes]))
    settings = {**_settings(how), "analyses": ", ".join(dict.fromkeys(specs))}
    content["cells"] = [*content["cells"], *cells]
    content["explain"] = {"settings": settings, "cells": cells}
    write_record(out / "run.json", content)
