"""A model on data to be explained: its targets, and its probes as sealed cells."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from steadyeye.core import plugins
from steadyeye.core.abilities import Adjustable
from steadyeye.core.predictions import Predictions
from steadyeye.core.spec import Spec
from steadyeye.core.storage.files import place
from steadyeye.core.types import Detector, Source
from steadyeye.explain.context import Probe, Subject
from steadyeye.explain.mining.causes import judge_detections
from steadyeye.explain.mining.error_rates import shares, summarize
from steadyeye.explain.score_cutoff import lower_threshold
from steadyeye.explain.targets import targets
from steadyeye.predictions.read import read
from steadyeye.runner.cache.store import Store
from steadyeye.runner.infer import attach_cache
from steadyeye.runner.job import Job
from steadyeye.runner.run import Cells
from steadyeye.runner.task import Task, task


@dataclass(frozen=True, eq=False)
class ExplainSettings:
    """The job, the score above which a detection is confident, and the most to be explained.

    `store`: where answers are stored; None: nowhere.
    """

    job: Job
    score: float
    limit: int | None
    store: Store | None
    cells: Cells


@dataclass(frozen=True, eq=False)
class ExplainedPair:
    """A model on data to be explained, `base`, and the same on the reference, if there is one."""

    asking: ExplainSettings
    base: Task
    reference: Task | None

    def _read(self, task_: Task) -> Predictions:
        return read(place(self.asking.job.out) / "cells" / task_.folder)

    def subject(self) -> Subject | None:
        """What the probes are made of; None where nothing is to be explained."""
        how, seed = self.asking, self.asking.job.seed
        predictions = self._read(self.base)
        control = self._read(self.reference) if self.reference else None
        found = targets(predictions, control, how.score, how.limit, seed)
        if not any(each.cause for each in found):
            return None
        model = lower_threshold(self.base.model)  # type: ignore[arg-type]
        source = self.reference.source if self.reference else None
        sealed = partial(self._seal_probe, model)
        told = (predictions, source, control, found, seed, sealed, how.score)
        return Subject(model, self.base.source, *told)

    def run_probe(self, subject: Subject, spec: Spec) -> Task:
        """The task of a probe, its cell sealed."""
        plugin: Callable[..., Probe] = plugins.load("probes", spec.name)
        probe = plugin(subject, **spec.kwargs)
        made = replace(probe, model=probe.model or subject.model)
        return self._complete(made, spec.name)

    def _seal_probe(self, model: Detector, name: str, source: Source) -> Predictions:
        return self._read(self._complete(Probe(source, model), name))

    def _complete(self, probe: Probe, name: str) -> Task:
        job, model, source = self.asking.job, probe.model, probe.source
        assert model is not None, "chosen before"
        spec = self.base.identity["model"]["spec"] if model is self.base.model else model.name
        text = f"{name} of {self.base.identity['data']['spec']}"
        made = task(job, (spec, model), (text, source), None)  # type: ignore[arg-type]
        about: dict[str, Any] = {"probe": self._about(source, name)}
        about |= {"shard_rows": probe.shard} if probe.shard else {}
        folder = f"{self.base.folder}+{name}"
        made = replace(made, folder=folder, identity={**made.identity, **about})
        made = attach_cache(made, self.asking.store)
        self.asking.cells.complete(made)
        return made

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
        """How many of the confident detections are mistakes; `several`: of several data."""
        predictions, score = self._read(self.base), self.asking.score
        of = shares(predictions, judge_detections(predictions, score))
        return summarize(predictions, of, score, several)


def _name_source(source: Source) -> dict[str, str]:
    return {"name": source.name, "fingerprint": source.fingerprint}
