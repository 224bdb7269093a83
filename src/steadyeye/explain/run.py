"""Why a detector is confidently wrong: targets of a run, their probes, and what they show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadyeye.core import plugins
from steadyeye.core.abilities import detects
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.predictions import Predictions
from steadyeye.core.spec import Spec, split
from steadyeye.core.storage.files import Place, place
from steadyeye.core.storage.run_lock import alone
from steadyeye.core.types import Evaluated, Result, Source
from steadyeye.explain.mining.causes import SCORE, judge_detections
from steadyeye.explain.mining.error_rates import share_results, shares
from steadyeye.explain.probe_cells import ExplainedPair, ExplainSettings
from steadyeye.predictions.json_record import write_record
from steadyeye.runner.cache.lookup import closing_store, open_configured_store
from steadyeye.runner.cache.store import Store
from steadyeye.runner.collect import record, tables
from steadyeye.runner.engine_spec import choice
from steadyeye.runner.job import Job
from steadyeye.runner.run import Cells, Watcher, run
from steadyeye.runner.validate import Plan, lacks
from steadyeye.runner.validate import check as check_job


@dataclass(frozen=True)
class Explaining:
    """What is to be explained: confident mistakes of the models on the data of a job, and how.

    `analyses`: a list of specs. `reference`: data of the same job that the control is from; None:
    the data itself. `score`: above it a detection is confident. `limit`: mistakes, and control
    detections, at most.
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
    """A finished explanation: its folder, the sources that its pictures are of, and what to say.

    `score`: above it a detection is confident.
    """

    out: Place
    sources: tuple[Source, ...]
    headline: tuple[str, ...]
    evaluated: tuple[Evaluated, ...]
    analyses: tuple[str, ...]
    score: float


def check(job: Job, how: Explaining) -> Explanation:
    """The plan of an explanation whose every part was found; `job.data` holds the reference too.

    Raises `UsageError` for unknown analyses and arguments, classifiers, and data without boxes.
    """
    specs = split(how.analyses)
    probes = [_probe(spec) for spec in specs]
    named = [probe.name for probe in probes if probe]
    if twice := [name for name in named if named.count(name) > 1]:
        raise UsageError(f"the probe '{twice[0]}' is given twice; explain into two folders")
    plan = check_job(job)
    for each in plan.tasks:
        if not detects(each.model):
            raise UsageError(f"{each.model.name} is a classifier; explain needs a detector")
        if "boxes" not in each.source.columns:
            raise UsageError(
                f"'{each.source.name}' has no true boxes, so mistakes are not known; give "
                "labelled data"
            )
    for spec, probe in zip(specs, probes, strict=True):
        plugin = plugins.load("analyses", spec.name)
        columns = plan.tasks[0].identity["data"]["columns"]
        if probe is None and (missing := lacks(plugin, columns)):
            raise UsageError(
                f"{spec.name} needs {', '.join(missing)}, which its probe does not provide"
            )
    # by the whole text: one analysis may be asked of several probes
    named_ones = {str(spec): probe for spec, probe in zip(specs, probes, strict=True)}
    return Explanation(plan, how, named_ones)


def explain(explanation: Explanation, watcher: Watcher) -> Explained:
    """Evaluates the data, then every probe of the mistakes found; stopped, it goes on.

    Raises `UsageError` where no model makes a confident mistake, for what a probe refuses, and
    where the folder holds another explanation.
    """
    plan, how = explanation.plan, explanation.how
    out = place(plan.job.out)
    before = _before(out, how)
    run(plan, watcher)
    sources = {each.source.fingerprint: each.source for each in plan.tasks}
    folders: list[str] = []
    store = open_configured_store(plan.job.cache)
    engine = choice(plan.job.engine, plan.job.address)
    with alone(out) as held, closing_store(store, watcher.say):
        found = _pairs(explanation, store, Cells(plan.job, out, engine, held, watcher))
        subjects = [(pair, subject) for pair in found if (subject := pair.subject()) is not None]
        if not subjects:
            raise UsageError(
                f"no model makes a mistake with a score above {how.score:g} on this data; lower "
                "--score or give other data"
            )
        for pair, subject in subjects:
            for spec in filter(None, explanation.probes.values()):
                made = pair.run_probe(subject, spec)
                sources[made.source.fingerprint] = made.source
                folders.append(made.folder)
        _write_record(out, how, before, folders)
    several = len({pair.base.source.fingerprint for pair in found}) > 1
    return Explained(
        out,
        tuple(sources.values()),
        tuple(pair.summarize(several) for pair in found),
        _list_evaluated(out, plan, how),
        tuple(dict.fromkeys(spec.name for spec in split(how.analyses))),
        how.score,
    )


def _probe(spec: Spec) -> Spec | None:
    """The spec of the probe that an analysis reads; None for one that reads the plain cells."""
    if not plugins.exists("analyses", spec.name):
        raise unknown("analysis", spec.name, plugins.names("analyses"))
    rest = {key: value for key, value in spec.kwargs.items() if key != "probe"}
    name = spec.kwargs.get("probe", spec.name)
    if "probe" not in spec.kwargs and not _has_probe(name):
        if rest:
            raise UsageError(f"{spec.name} has no probe of its name, so it takes no arguments")
        return None
    probe = Spec(str(name), rest)
    plugins.check_arguments(plugins.load("probes", probe.name), probe, positional=1)
    return probe


def _has_probe(name: str) -> bool:
    # a path names an analysis; the probe for it is named by probe='…'
    return name in plugins.names("probes")


def _pairs(explanation: Explanation, store: Store | None, cells: Cells) -> list[ExplainedPair]:
    """Every model on all data that is to be explained, with the same model on the reference."""
    plan, how = explanation.plan, explanation.how
    asking = ExplainSettings(plan.job, how.score, how.limit, store, cells)
    specs = [(each.identity["model"]["spec"], each.identity["data"]["spec"]) for each in plan.tasks]
    task_of = dict(zip(specs, plan.tasks, strict=True))
    return [
        ExplainedPair(asking, task, task_of[model, how.reference] if how.reference else None)
        for (model, data), task in task_of.items()
        if data != how.reference
    ]


def _list_evaluated(out: Place, plan: Plan, how: Explaining) -> tuple[Evaluated, ...]:
    """The probes, and the plain cells of the data to be explained."""
    reference = {
        each.source.fingerprint
        for each in plan.tasks
        if each.identity["data"]["spec"] == how.reference
    }
    found = [table for _, table in tables([out])]
    return tuple(
        Evaluated(table, {} if table.probe else _results(table, how.score))
        for table in found
        if table.probe or table.fingerprint not in reference
    )


def _results(table: Predictions, score: float) -> Mapping[str, Result]:
    """How many of a model's confident detections are mistakes, by cause."""
    return share_results(shares(table, judge_detections(table, score)), len(table.model_classes))


def _before(out: Place, how: Explaining) -> Mapping[str, Any]:
    """What the folder explains already: `settings` and sealed `cells`; empty where nothing.

    Raises `UsageError` where that is of other targets.
    """
    held: Mapping[str, Any] = record(out).get("explain", {}) if (out / "run.json").is_file() else {}
    if not held:
        return {}
    for key, value in _settings(how).items():
        if key != "analyses" and held["settings"][key] != value:
            raise UsageError(
                f"'{out}' holds another explanation: its {key} is {held['settings'][key]!r}, "
                f"not {value!r}; choose another --out"
            )
    sealed = [each for each in held["cells"] if (out / "cells" / each / "seal.json").is_file()]
    return {**held, "cells": sealed}


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
    """Adds the explanation and its cells to the record of the run, beside those of before."""
    content = dict(record(out))
    asked = [before["settings"]["analyses"]] if before else []
    specs = [str(spec) for text in (*asked, how.analyses) for spec in split(text)]
    cells = list(dict.fromkeys([*before.get("cells", []), *probes]))
    settings = {**_settings(how), "analyses": ", ".join(dict.fromkeys(specs))}
    content["cells"] = [*content["cells"], *cells]
    content["explain"] = {"settings": settings, "cells": cells}
    write_record(out / "run.json", content)
