"""The Python interface: `evaluate` a model on a source, ask the `Run` for numbers.

::

    import steadyeye as se

    run = se.evaluate(model, "video(path='clip.mp4', anchors=20, labels='clip.json')")
    print(run.pm_k(10))
    run.report("report.html")
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from tempfile import mkdtemp
from typing import Any

from steadyeye.classes.known import read as read_classes
from steadyeye.comparison.boards import Boards
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.reviewed import reviewed
from steadyeye.core.spec import parse
from steadyeye.core.table import Predictions
from steadyeye.core.types import Model, Result, Source
from steadyeye.evaluation import comparing, plan, summary
from steadyeye.evaluation.collect import noted, results
from steadyeye.evaluation.job import Job
from steadyeye.evaluation.measure import measure
from steadyeye.evaluation.run import Silent
from steadyeye.evaluation.run import run as complete
from steadyeye.inference.function import FunctionClassifier
from steadyeye.predictions.measured import joined
from steadyeye.predictions.read import cells, read
from steadyeye.storage.place import Place, place

OPTIONS = {
    "workers",
    "batch",
    "on_error",
    "reduce",
    "class_map",
    "class_list",
    "operators",
    "levels",
    "seed",
    "fast",
    "cache",
    "engine",
    "address",
}


@dataclass(frozen=True)
class Run:
    """A finished run of one model on one source; every metric is a method: `run.pm_k(10)`.

    `folder`: where the sealed predictions are; `opened` with them again later.
    """

    folder: Place

    @cached_property
    def predictions(self) -> Predictions:
        """The sealed predictions, with what was measured of their frames.

        Where people judged the frames, those that they accepted.
        """
        folders = cells(self.folder)[0]
        return reviewed(noted(self.folder, folders, joined([self.folder], read(*folders))))

    def measure(self, source: Source | None = None, *, workers: int = 0) -> "Run":
        """The run with its frames measured, once for all models: `predictions.tags["motion"]`.

        `source`: what was evaluated, where it was an object rather than a spec string. Stopped,
        the same call goes on. Raises `UsageError` where there are no pm-sets.
        """
        measured = measure(self.folder, Silent(), workers, [source] if source else [])
        summary.store_pictures(self.folder, [each.source for each in measured])
        return Run(self.folder)

    def __getattr__(self, name: str) -> Callable[..., Result]:
        """The metric `name` over this run's predictions."""
        if name.startswith("_") or name not in plugins.names("metrics"):
            raise AttributeError(f"a run has no '{name}'; metrics: {plugins.names('metrics')}")
        return partial(plugins.load("metrics", name), self.predictions)

    def results(self) -> Mapping[str, Result]:
        """All metrics that the data allows, by name."""
        return results(self.predictions)

    def report(self, path: str | Place = "report.html") -> Place:
        """Writes the report; the suffix (html, md, json, csv) is the format. Returns its path."""
        summary.write([self.folder], [place(path)])
        return place(path)


def evaluate(
    model: str | Model | Callable[..., Any],
    source: str | Source,
    *,
    out: str | Place | None = None,
    classes: str | None = None,
    **options: Any,
) -> Run:
    """Evaluates `model` on `source` and returns the finished `Run`.

    `model`: a spec string, a `Model`, or any callable on (n, h, w, 3) uint8 RGB that returns (n,
    classes) scores. `classes`: what a callable's scores are over (`imagenet1k` or a class file);
    the data's classes if left out. `out`: the folder of the run, resumed if it holds the same; a
    temporary folder if left out. `options`: `workers`, `batch`, `on_error`, `reduce`, `class_map`
    and `class_list` as in a job; `operators` ("all" or a list of specs), `levels`, `seed` and
    `fast` degrade the images, as `steadyeye degrade` does; `cache`: the folder where answers are
    kept, or `off`; `engine`: `local(processes=4)` or `ray(…)`, where objects must be such that
    another process can import them, and `address`. Raises `UsageError` for everything a user can
    get wrong.
    """
    named_model, built_model = _model(model, classes)
    named_source, built_source = _source(source)
    folder = place(out if out is not None else mkdtemp(prefix="steadyeye-"))
    unknown_options = set(options) - OPTIONS
    if unknown_options:
        raise UsageError(f"evaluate has no option '{min(unknown_options)}'; see help(evaluate)")
    job = Job(models=(named_model,), data=(named_source,), out=str(folder), **options)
    plan.present(named_source, built_source)
    parts = ((model, named_model, built_model), (source, named_source, built_source))
    given = {name: each for asked, name, each in parts if not isinstance(asked, str)}
    checked = plan.of_objects(job, [built_model], [(named_source, built_source)], given)
    complete(checked, Silent())
    summary.store_pictures(folder, [built_source])
    return Run(folder)


def opened(folder: str | Place) -> Run:
    """The finished run in a folder."""
    return Run(place(folder))


def compare(*runs: Run | str | Place, metrics: str | None = None) -> list[Boards]:
    """The leaderboards of finished runs, or their folders, on each of the data that they share.

    `metrics`: a list of specs; those of each run's job if left out. Raises `UsageError` for runs
    that were not given the same samples.
    """
    folders = [run.folder if isinstance(run, Run) else place(run) for run in runs]
    return comparing.ordered(comparing.shared(folders, metrics))


def _model(model: str | Model | Callable[..., Any], classes: str | None) -> tuple[str, Model]:
    if isinstance(model, str):
        return model, plugins.build("models", parse(model))
    if hasattr(model, "fingerprint") and hasattr(model, "recipe"):
        return model.name, model  # type: ignore[union-attr, return-value]
    name = getattr(model, "__name__", type(model).__name__)
    return name, FunctionClassifier(model, read_classes(classes) if classes else None, name=name)


def _source(source: str | Source) -> tuple[str, Source]:
    if isinstance(source, str):
        return source, plugins.build("sources", parse(source))
    return source.name, source
