"""The Python interface: `evaluate` a model on a source, then read numbers from the `Run`.

::

    import steadyeye as se

    run = se.evaluate(model, "video(path='clip.mp4', anchors=20, labels='clip.json')")
    print(run.pm_k(10))
    run.report("report.html")
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

from steadyeye.core import notebook, plugins
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Section
from steadyeye.core.review_filter import select_reviewed
from steadyeye.core.spec import Spec, parse
from steadyeye.core.storage.files import Place, make_temporary_folder, place
from steadyeye.core.storage.run_lock import check_out
from steadyeye.core.types import Model, Result, Source, results_html
from steadyeye.data.classes.class_lists import list_classes, read_given
from steadyeye.data.python_data import read_first_image, read_items
from steadyeye.data.python_items import augment
from steadyeye.models.detectors.function_detector import adapt_model, is_maite_model
from steadyeye.predictions.coco_results import list_results
from steadyeye.predictions.covariate_table import join_measures
from steadyeye.predictions.fiftyone_results import add_to_dataset
from steadyeye.predictions.read import cells, read, select_cell
from steadyeye.predictions.sample_rows import build_table
from steadyeye.report import build
from steadyeye.report import compare as run_comparison
from steadyeye.report.comparison.leaderboards import Boards
from steadyeye.report.sections import sections
from steadyeye.runner import validate
from steadyeye.runner.collect import add_notes, evaluate_metrics, results
from steadyeye.runner.job import Job, read_options
from steadyeye.runner.measure import measure
from steadyeye.runner.metric_calls import bind_metric
from steadyeye.runner.run import Silent
from steadyeye.runner.run import run as complete
from steadyeye.runner.short_forms import expand_data, expand_model

if TYPE_CHECKING:
    import pyarrow as pa

    from steadyeye.metric_methods import MetricMethods
    from steadyeye.report.leaderboard_site import LeaderboardSite
else:
    # at run time each metric is read from its own file, on first use
    MetricMethods = object

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


@dataclass(frozen=True, repr=False)
class Run(MetricMethods):
    """A finished run of one model on one source; every metric is a method: `run.pm_k(10)`.

    `folder`, `cell`: the folder of the sealed predictions and their name in it, for `open_run`.
    `dir(run)` lists the metrics, `dir(run.analyses)` the sections of a report.

    Example with a model that is right on all of twelve invented pm-sets:

        >>> from steadyeye.testing import example_source, tell_example_classes
        >>> run = evaluate(tell_example_classes, example_source())
        >>> print(run.pm_k(1))
        pm_k(k=1) 100.0 % (95 % interval 54.1–100.0 %, n = 12, among 3 classes)
        >>> run.predictions.scores.shape
        (60, 3)
        >>> sorted(run.results())[:3]
        ['accuracy', 'conditional_robustness(k=2)', 'confidence_jump']
    """

    folder: Place
    cell: str | None = None

    @cached_property
    def predictions(self) -> Predictions:
        """The sealed predictions, with the measurements of their frames.

        For a reviewed source, those of the accepted frames.
        """
        folders = select_cell(self.folder, self.cell)
        return select_reviewed(
            add_notes(self.folder, folders, join_measures([self.folder], read(*folders)))
        )

    def measure(self, source: Source | None = None, *, workers: int = 0) -> "Run":
        """The run with its frames measured, once for all models: `predictions.tags["motion"]`.

        `source`: the evaluated source, if it was an object and not a spec string. The same call
        resumes a stopped one. Raises `UsageError` without pm-sets.
        """
        if source is not None and not isinstance(source, Source):
            raise UsageError(
                f"measure takes a source, not a {type(source).__name__}; data of Python has no "
                "pm-sets to measure"
            )
        measured = measure(self.folder, Silent(), workers, [source] if source else [])
        build.store_pictures(self.folder, [predictions.source for predictions in measured])
        return Run(self.folder, self.cell)

    if not TYPE_CHECKING:  # a name that is no metric is a type error, too

        def __getattr__(self, name: str) -> Callable[..., Result]:
            """The metric `name` over this run's predictions."""
            if name.startswith("_") or name not in plugins.names("metrics"):
                raise AttributeError(_no_attribute(name))
            return bind_metric(name, lambda: self.predictions)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *plugins.names("metrics")})

    def __repr__(self) -> str:
        try:
            names = [self.cell] if self.cell else [rounds[0].name for rounds in cells(self.folder)]
        except UsageError:
            names = ["no finished run"]
        return notebook.short("Run", f"{', '.join(names).replace('@', ' on ')}, in {self.folder}")

    def _repr_html_(self) -> str | None:
        if self.cell is None and len(cells(self.folder)) > 1:
            return None  # a notebook shows the `repr`, which names them
        table = self.predictions
        caption = f"{table.model} on {table.data}: {number_of(len(table), 'sample')}"
        return results_html(caption, tuple(self.results().values()))

    @property
    def analyses(self) -> "Analyses":
        """The sections of a report, each as a method: `run.analyses.failures()`."""
        return Analyses(self)

    def results(self) -> Mapping[str, Result]:
        """All metrics that the data allow, by name."""
        return results(self.predictions)

    def rows(self) -> "pa.Table":
        """The rows as an Arrow table, one per sample; see `predictions.sample_rows.build_table`.

        `run.rows().to_pandas()`, `polars.from_arrow(run.rows())`, and in DuckDB by its name.
        """
        return build_table(self.predictions)

    def coco_results(self, category_ids: Sequence[int] | None = None) -> list[dict[str, object]]:
        """The detections as COCO's results, see `predictions.coco_results.list_results`."""
        return list_results(self.predictions, category_ids)

    def to_fiftyone(self, dataset: Any, field: str = "steadyeye") -> None:
        """Adds the predictions to a dataset of FiftyOne, see `predictions.fiftyone_results`."""
        add_to_dataset(self.predictions, dataset, field)

    def report(self, path: str | Place = "report.html") -> Place:
        """Writes the report; the suffix (html, md, json, csv) is the format. Returns its path."""
        build.write([self.folder], [place(path)])
        return place(path)


@dataclass(frozen=True)
class Analyses:
    """The analyses as methods, each returning its section of a report, or None."""

    run: Run

    def __getattr__(self, name: str) -> Callable[[], Section | None]:
        """The analysis `name` of the run."""
        if name.startswith("_") or name not in plugins.names("analyses"):
            raise AttributeError(str(unknown("analysis", name, plugins.names("analyses"))))

        @wraps(plugins.load("analyses", name))
        def analysis() -> Section | None:
            return next(iter(sections([evaluate_metrics(self.run.predictions)], (name,))), None)

        analysis.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
        return analysis

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *plugins.names("analyses")})


def evaluate(
    model: str | Model | Callable[..., Any],
    source: str | Source | Sequence[Any],
    *,
    out: str | Place | None = None,
    classes: str | Sequence[str] | None = None,
    augmentation: Callable[..., Any] | None = None,
    **options: Any,
) -> Run:
    """Evaluates `model` on `source` and returns the finished `Run`.

    `model`: a spec string, a `Model`, a classifier or detector of MAITE, or any callable on (n, h,
    w, 3) uint8 RGB that returns (n, classes) scores or, on data with boxes or whole videos, the
    boxes of each image. `source`: a spec string, a `Source`, or data of Python: a list of (image,
    label), a dataset of PyTorch, Hugging Face, FiftyOne, supervision or MAITE, with classes or
    boxes. `classes`: the classes of a callable's predictions, and of numeric labels if the data do
    not name their classes (a list of names, `imagenet1k` or a class file); by default the data's.
    `augmentation`: of MAITE, applied to the images (and boxes) of Python data. `out`: the folder of
    the run, resumed if it holds the same run; by default a temporary one, which is deleted when the
    program ends. `options`: `workers`, `batch`, `on_error`, `reduce`, `class_map` and `class_list`
    as in a job; `operators` ("all" or a list of specs), `levels`, `seed` and `fast` degrade the
    images, as `steadyeye degrade` does; `cache`: the folder of the cache, or `off`; `engine`:
    `local(processes=4)` or `ray(…)`, for which other processes must be able to import the objects,
    and `address`. Raises `UsageError` for every user error.

    Example with a function that predicts a cat for every image:

        >>> import numpy as np
        >>> from steadyeye.testing import example_source
        >>> def see_cats(images):
        ...     return np.tile([0.2, 0.5, 0.3], (len(images), 1))
        >>> print(evaluate(see_cats, example_source()).accuracy())
        accuracy 25.0 % (95 % interval 5.9–61.8 %, n = 12, among 3 classes)

    And on a list in which two of three images are cats:

        >>> data = [(np.zeros((32, 32, 3), np.uint8), name) for name in ("cat", "dog", "cat")]
        >>> print(evaluate(see_cats, data, classes=["bird", "cat", "dog"]).accuracy())
        accuracy 66.7 % (95 % interval 9.4–99.2 %, n = 3, among 3 classes)
    """
    if unknown_options := set(options) - OPTIONS:
        raise UsageError(f"evaluate has no option '{min(unknown_options)}'; see help(evaluate)")
    check_out(folder := place(out) if out is not None else make_temporary_folder())
    classes, is_skipped = list_classes(classes), options.get("on_error") == "skip"
    named_source, built_source = _source(source, classes, augmentation, is_skipped)
    named_model, built_model = _model(model, classes, built_source)
    job = Job(models=(named_model,), data=(named_source,), out=str(folder), **read_options(options))
    validate.present(named_source, built_source)
    objects: dict[str, Any] = {} if isinstance(model, str) else {named_model: built_model}
    objects |= {} if isinstance(source, str) else {named_source: built_source}
    checked = validate.of_objects(job, [built_model], [(named_source, built_source)], objects)
    complete(checked, Silent())
    build.store_pictures(folder, [built_source])
    return Run(folder)


def open_run(folder: str | Place, cell: str | None = None) -> Run:
    """The finished run in a folder of `evaluate` or `steadyeye run`.

    `cell`: "MODEL@DATA", if `folder` has several; reports and comparisons take all of them. Raises
    `UsageError` when predictions are read that are incomplete, or several and `cell` names none.

    Example with a run on invented pm-sets:

        >>> from steadyeye.testing import example_source, tell_example_classes
        >>> folder = evaluate(tell_example_classes, example_source()).folder
        >>> print(open_run(folder).accuracy())
        accuracy 100.0 % (95 % interval 54.1–100.0 %, n = 12, among 3 classes)
    """
    return Run(place(folder), cell)


def compare(*runs: Run | str | Place, metrics: str | None = None) -> list[Boards]:
    """The leaderboards of finished runs, or their folders, on each data set that they share.

    `metrics`: a list of specs; by default those of each run's job. Raises `UsageError` for runs on
    different samples.

    Example with two models on the same invented pm-sets:

        >>> import numpy as np
        >>> from steadyeye.testing import example_source, tell_example_classes
        >>> def see_cats(images):
        ...     return np.tile([0.2, 0.5, 0.3], (len(images), 1))
        >>> runs = [evaluate(model, example_source()) for model in (see_cats, tell_example_classes)]
        >>> boards = compare(*runs, metrics="accuracy")
        >>> boards
        [<Boards 2 models on example: accuracy>]
    """
    return run_comparison.rank_models(run_comparison.group_shared(_list_folders(runs), metrics))


def leaderboard(
    *runs: Run | str | Place, out: str | Place | None = None, metrics: str | None = None
) -> "LeaderboardSite":
    """The leaderboard of finished runs, or their folders, as `steadyeye leaderboard` writes it.

    `rows` has each model by each metric on each data set: value, interval, and the possible ranks;
    `correlations` compares the order of models between data sets, `lines` has their own lines from
    accuracy to pm-k, `findings` the results in sentences. `out`: the folder of the page, the cards
    and all numbers; by default nothing is written. `metrics`: a list of specs; by default those of
    each run's job. Raises `UsageError` for a run that shares its samples with no other model, and
    for a folder that cannot be written.

    Example with two models on the same invented pm-sets, one of them right on all:

        >>> import numpy as np
        >>> from steadyeye.testing import example_source, tell_example_classes
        >>> def see_cats(images):
        ...     return np.tile([0.2, 0.5, 0.3], (len(images), 1))
        >>> runs = [evaluate(model, example_source()) for model in (see_cats, tell_example_classes)]
        >>> site = leaderboard(*runs, metrics="accuracy")
        >>> [(row.model, row.value, row.rank) for row in site.rows]
        [('tell_example_classes', 1.0, 1), ('see_cats', 0.25, 2)]
    """
    from steadyeye.report.leaderboard_files import write_site
    from steadyeye.report.leaderboard_site import build_site

    site = build_site(_list_folders(runs), metrics)
    if out is not None:
        write_site(site, place(out))
    return site


def _list_folders(runs: Sequence[Run | str | Place]) -> list[Place]:
    if not runs:
        raise UsageError("there is no run to compare; give runs of two models or more")
    if isinstance(runs[0], list | tuple):
        raise UsageError(f"a run is a {type(runs[0]).__name__}; give each run by itself: *runs")
    return [run.folder if isinstance(run, Run) else place(run) for run in runs]


def ls(kind: str) -> Mapping[str, str]:
    """The plugins of a kind, name → its description in one line.

    `kind`: `models`, `sources`, `metrics`, `analyses`, `operators` or `probes`. Raises `UsageError`
    for another.

    Example of one operator:

        >>> ls("operators")["elastic_transform"]
        'Pixels displaced by a smooth random field, scaled by 12.5 … 30 (stochastic, global)'
    """
    kinds = ("analyses", "metrics", "models", "operators", "probes", "sources")
    if kind not in kinds:
        raise unknown("kind", kind, kinds)
    return plugins.describe(kind)


def _no_attribute(name: str) -> str:
    """The error text for an unknown name of a run, with the nearest known one."""
    known = {*plugins.names("metrics"), *(n for n in vars(Run) if not n.startswith("_")), "folder"}
    return f"a run has no '{name}': {unknown('metric', name, known)}"


def _model(
    model: str | Model | Callable[..., Any], classes: str | Sequence[str] | None, source: Source
) -> tuple[str, Any]:
    if isinstance(model, str):
        return model, plugins.build("models", _parse_full(model, expand_model(model)))
    if isinstance(model, Model):
        return model.name, model
    if not callable(model):
        raise UsageError(
            f"cannot evaluate {type(model).__name__}; give a spec string such as "
            "onnx(path='model.onnx'), or a function of (n, h, w, 3) uint8 that returns scores"
        )
    # whole videos, which have scenes, can be for detectors too
    may_detect = {"boxes", "scene"} & set(source.columns) or is_maite_model(model)
    image = read_first_image(source) if may_detect and len(source) else None
    known = read_given(classes) if classes else None
    adapted = adapt_model(model, known, source.classes, image)
    return adapted.name, adapted


def _parse_full(text: str, full: str) -> Spec:
    """The spec of a text. Raises `UsageError` for a short form: its full spec is not printed."""
    if text != full:
        raise UsageError(f"'{text}' is short for {full}, which Python takes in full; write that")
    return parse(text)


def _source(
    source: str | Source | Sequence[Any],
    classes: str | Sequence[str] | None,
    augmentation: Callable[..., Any] | None,
    skip_unreadable: bool,
) -> tuple[str, Source]:
    if augmentation is not None and isinstance(source, str | Source):
        raise UsageError(
            "an augmentation of MAITE goes with data of Python, such as a dataset of MAITE; for "
            f"{'this spec' if isinstance(source, str) else source.name} give operators=[…]"
        )
    if isinstance(source, str):
        return source, plugins.build("sources", _parse_full(source, expand_data(source)))
    if isinstance(source, Source):
        return source.name, source
    data = source if augmentation is None else augment(source, augmentation)
    built = read_items(data, classes, skip_unreadable)
    return built.name, built
