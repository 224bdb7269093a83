"""From a job's operators and levels to the sweep of a model over a source."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from steadyeye.core import plugins
from steadyeye.core.abilities import detects
from steadyeye.core.defaults import IMAGENET_C, IMAGENET_C_EXTRA, OPERATORS
from steadyeye.core.errors import UsageError, list_texts, unknown
from steadyeye.core.format import number_of
from steadyeye.core.model_stages import at_input
from steadyeye.core.predictions import Predictions
from steadyeye.core.spec import Spec, parse, split
from steadyeye.core.storage.files import Place, place
from steadyeye.core.types import Model, Source
from steadyeye.data.classes.class_map import ClassMap
from steadyeye.degradation.curves import CHOICES
from steadyeye.degradation.operator import DEFAULT, LEVELS, Operator, parse_levels
from steadyeye.degradation.sweep import Degrading, Sweep, refuse_without_gradient
from steadyeye.predictions.read import cells, read
from steadyeye.runner.job import Job

AS_CLASSIFIER = (
    "the class of its most confident box is measured, as for a classifier; other boxes and "
    "their places do not count, and no mAP is measured"
)
GROUPS = {"all": OPERATORS, "imagenet_c": IMAGENET_C, "imagenet_c_extra": IMAGENET_C_EXTRA}
"""Names that stand for several operators."""


def degrading(job: Job, models: Sequence[Model]) -> Degrading | None:
    """The degradation of a job's images; None without one.

    `all` operators are those that every model allows. Raises `UsageError` for unknown operators
    and for levels of which one of them has none but 0.
    """
    if not job.operators:
        return None
    # a search asks for single levels, and level l of a gradient operator costs l steps
    gradients = not job.fast and all(at_input(model).gradient for model in models)
    chosen = operators(job.operators, gradients)
    how = Degrading(chosen, levels(job.levels, chosen), job.seed)
    lost = [operator for operator, steps in zip(chosen, how.steps(), strict=True) if not any(steps)]
    if lost:
        raise UsageError(
            f"levels '{job.levels}' include none of {lost[0].name}, whose levels are 1 to "
            f"{lost[0].last}; leave --levels out to use all levels of each operator"
        )
    return how


def operators(text: str, gradients: bool) -> tuple[Operator, ...]:
    """The operators of a comma-separated list of specs; none comes twice.

    `all` among them stands for the fifteen of Swingler 2022, `imagenet_c` and `imagenet_c_extra`
    for the fifteen and the four further corruptions of Hendrycks and Dietterich 2019; those of them
    that are named too have the parameters named. `gradients`: whether a group may hold operators
    that need a differentiable model. Raises `UsageError` for unknown names, and for one that is
    named with other parameters.
    """
    specs = list(dict.fromkeys(map(str, split(text))))
    for spec in map(parse, specs):
        if spec.name in GROUPS:
            if spec.kwargs:
                raise UsageError(
                    f"{spec}: '{spec.name}' takes no parameters; name the operator that has them"
                )
        elif not plugins.exists("operators", spec.name):
            raise unknown("operator", spec.name, (*GROUPS, *plugins.names("operators")))
    groups = [name for name in GROUPS if name in specs]
    singles = [plugins.build("operators", parse(spec)) for spec in specs if spec not in groups]
    names = [operator.name for operator in singles]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise UsageError(f"the operator '{min(twice)}' is given twice; leave one out")
    members = [plugins.build("operators", Spec(name)) for group in groups for name in GROUPS[group]]
    allowed = [operator for operator in members if gradients or not operator.needs_gradient]
    return tuple({operator.name: operator for operator in (*allowed, *singles)}.values())


def levels(text: str, chosen: Sequence[Operator] = ()) -> tuple[int, ...]:
    """The levels of `first:last[:step]`, both ends meant, or of a list with commas; rising.

    Level 0 is always among them. The default text names those that the operators have. Raises
    `UsageError` for other text and for a level beyond the last of every operator.
    """
    most = max((operator.last for operator in chosen), default=LEVELS)
    if text == DEFAULT and most < LEVELS:
        return tuple(range(most + 1))
    return tuple(sorted({0, *parse_levels(text, most)}))


def metrics(images: str, thresholds: str, fast: bool = False, job: Job | None = None) -> str:
    """The metrics of a sweep as a list of specs. Raises `UsageError` for what they cannot take.

    Of a `job` with a detector and true boxes mAP and objects, beside what classifiers of it have.
    """
    if images not in CHOICES:
        raise unknown("value of images", images, CHOICES)
    try:
        shares = [float(part) for part in thresholds.split(",")]
    except ValueError:
        raise UsageError(f"failure points '{thresholds}': write shares such as 0.9,0.5") from None
    if not all(0 < share <= 1 for share in shares):
        raise UsageError(f"failure points '{thresholds}': give shares above 0 and up to 1")
    if fast and images != "right":
        raise UsageError("--fast searches among the images right at level 0; leave --images out")
    kinds = {_answers_boxes(text) for text in job.models} if job else {False}
    boxed = True in kinds and job is not None and all(map(_has_boxes, job.data))
    specs: list[Spec] = []
    if not boxed or False in kinds:
        profiles = () if fast else ("degraded_accuracy", "degraded_rank", "degraded_probability")
        specs += [Spec(name, {"images": images}) for name in profiles]
        own = {"thresholds": shares} if fast else {"thresholds": shares, "images": images}
        specs.append(Spec("failure_points", own))
        if job and not fast and covers_corruptions(job):
            # the user's images are not those that AlexNet's errors are of
            specs.append(Spec("mce", {"baseline": "none"}))
    if boxed:
        objects = {"objects": "found" if images == "right" else "all"}
        specs += [] if fast else [Spec("mpc"), Spec("rpc"), Spec("degraded_recall", objects)]
        points = ("map_failure_points", "recall_failure_points")
        specs += [Spec(name, {"thresholds": shares}) for name in points]
    return ", ".join(map(str, specs))


def _answers_boxes(model: str) -> bool:
    """Whether a model is a detector: by its file, or built where that may give either."""
    try:
        answers = plugins.declaration("models", parse(model).name).answers
        if len(answers) == 1:
            return answers == ("boxes",)
        return detects(plugins.build("models", parse(model)))
    except (UsageError, OSError):  # which the check of the job says, with all else that is wrong
        return False


def _has_boxes(data: str) -> bool:
    try:
        return "boxes" in plugins.build("sources", parse(data)).columns
    except UsageError:
        return False


def covers_corruptions(job: Job) -> bool:
    """Whether the job sweeps the group `imagenet_c` at all severities."""
    return job.levels == DEFAULT and Spec("imagenet_c") in split(job.operators or "")


def build_sweep(
    model: Model, source: Source, class_map: ClassMap, how: Degrading, job: Job
) -> tuple[Model, Sweep]:
    """The model for fitted images, and the sweep of the labelled images of a source.

    Of a `fast` job level 0 alone, where a search begins; the whole sweep otherwise. Of one with a
    `baseline` only the images that the model of that run gets right.

    A frame that several sets share is one image.

    Raises `UsageError` where no image is labelled, where a review rejected some, or where the
    model has no gradient that is needed.
    """
    if "accepted" in source.columns:
        raise UsageError(
            f"'{source.name}' holds frames that its review rejected; degrade accepted frames "
            "only: leave out review=False"
        )
    parts = at_input(model)
    refuse_without_gradient(how, parts, model.name)
    # an image without objects counts in mAP: what is detected in it is a false positive
    boxed = detects(model) and "boxes" in source.columns
    images = [i for i, truth in enumerate(source.truths) if truth or boxed]
    if not images:
        raise UsageError(f"'{source.name}' has no labels; degrade measures accuracy: give labels")
    unlabelled = len(source) - len(images)
    notes = (*source.notes, *([f"{unlabelled} unlabelled samples left out"] if unlabelled else []))
    labelled, images = len(images), _list_frames(source, images)
    if labelled > len(images):
        shared = number_of(labelled - len(images), "sample")
        notes = (*notes, f"{shared} left out: frames that several sets share count once")
    if detects(model) and not boxed:
        notes = (*notes, f"{model.name} is a detector: {AS_CLASSIFIER}")
    if job.baseline:
        images, note = select_images(job.baseline, source, images)
        notes = (*notes, note)
    cells = how.baseline(images) if job.fast else how.grid(images)
    sweep = Sweep(source, parts, how, cells, class_map.members, notes, exhaustive=not job.fast)
    return parts.model, sweep


def print_with_shared(sweep: Sweep) -> str:
    """The fingerprint of a sweep by earlier versions: a frame counts once for each of its sets."""
    base, how = sweep.base, sweep.how
    images = [i for i, truth in enumerate(base.truths) if truth or "boxes" in base.columns]
    cells = how.grid(images) if sweep.exhaustive else how.baseline(images)
    return replace(sweep, cells=cells).fingerprint


def _list_frames(source: Source, images: Sequence[int]) -> list[int]:
    """Of images that are the same frame with the same labels, which several sets share, the first.

    Several copies of a frame would count as that many images in every share and interval.
    """
    if not {"group", "video", "frame"} <= set(source.columns):
        return list(images)
    firsts: dict[tuple[object, ...], int] = {}
    for index in images:
        sample = source[index]
        key = (sample.tags["video"], sample.tags["frame"], sample.truth)
        firsts.setdefault(key, index)
    return list(firsts.values())


def plan_baseline(sweep: Job, baseline: str) -> tuple[Job | None, Job]:
    """The job of a reference model, and the sweep that is limited to what it gets right.

    `baseline`: a model, which is run beside the folder of the sweep, or the folder of a finished
    run, which needs no job. Raises `UsageError` for a sweep that a baseline does not go with.
    """
    # with OpenCV, which whoever only reads a sweep does without
    from steadyeye.runner.short_forms import default_folder, expand_job

    if (place(baseline) / "run.json").is_file():
        return None, replace(sweep, baseline=baseline)
    limited = replace(sweep, baseline=baseline)  # what does not go with it is said first
    folder = f"{(sweep.out or default_folder(limited)).rstrip('/')}-baseline"
    reference = replace(
        sweep,
        models=(baseline,),
        out=folder,
        operators=None,
        levels=Job().levels,
        seed=0,
        metrics="accuracy",
    )
    return expand_job(reference), replace(sweep, baseline=folder)


@contextmanager
def name_in_errors(baseline: str) -> Iterator[None]:
    """Adds to errors of a baseline's run that they are the baseline's."""
    try:
        yield
    except UsageError as error:
        # a line that names the baseline says so already
        texts = (text if baseline in text else f"{baseline}: {text}" for text in error.args)
        raise type(error)(*(f"the baseline {text}" for text in texts)) from error


def select_images(folder: str, source: Source, images: Sequence[int]) -> tuple[list[int], str]:
    """Those of some images of a source that the model of a finished run gets right; with a note.

    `folder`: of the run, of one model on the same source, not degraded. `images`: their places in
    the source. Swingler 2022 compares models on the images of one of them. Raises `UsageError`
    where the folder holds no such run, and where the model is right on none.
    """
    table = _find_predictions(place(folder), source)
    if table.detections is not None:
        raise UsageError(
            f"the baseline {table.model} is a detector, which is right or wrong on objects and not "
            "on images; give a classifier, or leave --baseline out"
        )
    right = set(table.ids[table.right & table.valid].tolist())
    names = source.ids
    chosen = [image for image in images if names[image] in right]
    if not chosen:
        raise UsageError(
            f"the baseline {table.model} is right on none of {number_of(len(images), 'image')} of "
            f"{source.name}; take another model, or leave --baseline out"
        )
    return chosen, (
        f"{len(images) - len(chosen):,} of {number_of(len(images), 'image')} left out: wrong by "
        f"the baseline model {table.model}, undegraded"
    )


def _find_predictions(run: Place, source: Source) -> Predictions:
    tables = [read(*folders) for folders in cells(run)]
    on_source = [t for t in tables if t.fingerprint == source.fingerprint and not t.sweep]
    if len(on_source) == 1:
        return on_source[0]
    if on_source:
        models = list_texts([table.model for table in on_source])
        raise UsageError(
            f"the baseline '{run}' has several models, {models}; give a run of one model"
        )
    raise UsageError(
        f"the baseline '{run}' has no predictions of {source.name} as it is; give a run on the "
        "same data, or the model itself"
    )
