"""The app that commands register with, and the options that several of them share."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from steadyeye.core.code_permission import OPTION, allow_code
from steadyeye.core.errors import UsageError

app = typer.Typer(
    help="Measure how steady a vision model is under natural change.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

JobFile = Annotated[Path | None, typer.Argument(help="Job file in TOML; options override it.")]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="Model: a spec or short form, e.g. \"timm(name='resnet50.a1_in1k')\" or model.onnx; "
        "may be repeated.",
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        help="Data: a spec or short form, e.g. \"video(path='clip.mp4', k=10)\" or clip.mp4; "
        "may be repeated.",
    ),
]
Out = Annotated[
    str | None,
    typer.Option("--out", help="Folder of the run; default: runs/<model>-<data>-<n>."),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Delete the run in --out and start again.")
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        help="Metrics, e.g. 'accuracy, pm_k(k=5)'; default: all that apply; may be repeated."
    ),
]
ReportMetrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics",
        help="Metrics, e.g. 'accuracy, pm_k(k=5)'; default: those of each run's job, or all that "
        "apply; may be repeated.",
    ),
]
ClassMap = Annotated[
    str | None,
    typer.Option(
        help="Map from model classes to data classes: a .csv or .json file, or class lists that "
        "define the names, e.g. vid30 or imagenet1k:classes.txt; default: by meaning."
    ),
]
Workers = Annotated[int | None, typer.Option(help="Number of threads; default: one per core.")]
ConfidentScore = Annotated[
    float, typer.Option(help="Score above which a mistake is confident, at least 0 and below 1.")
]
Operators = Annotated[
    list[str] | None,
    typer.Option(
        "--operators",
        "--operator",
        help="Degradation operators, e.g. 'all, gaussian_noise'; default: all; may be repeated.",
    ),
]
Levels = Annotated[
    str | None,
    typer.Option(
        help="Degradation levels besides 0: first:last:step, or a list such as 5,10,20; default: "
        "all of an operator, at most 30."
    ),
]
Runs = Annotated[list[str], typer.Argument(help="Folders of finished runs.")]
ReportFile = Annotated[str, typer.Option(help="File to write; its suffix sets the format.")]
Formats = Annotated[
    str,
    typer.Option(
        "--format",
        help="Formats to write, separated by commas: html, md, json, csv; default: the suffix of "
        "--out.",
    ),
]

AllowedCode = Annotated[
    list[str] | None,
    typer.Option(
        OPTION,
        help="Code that a trained model or a run may execute, e.g. 'my_models:network' or a "
        "pickled file; may be repeated.",
    ),
]

# what a wrong word on the command line raises; typer exports only what derives from it
ParsingError: type[Any] = typer.BadParameter.__mro__[1]


@dataclass(frozen=True)
class JobOptions:
    """The models, the data, and the folder of the run."""

    job: JobFile = None
    model: Models = None
    data: Data = None
    out: Out = None


@dataclass(frozen=True)
class ClassOptions:
    """How classes of the model map to those of the data."""

    class_map: ClassMap = None
    class_list: Annotated[
        str | None,
        typer.Option(
            help="Whether the data's classes are all that can occur ('closed') or not ('open'); "
            "default: as the data say."
        ),
    ] = None
    reduce: Annotated[
        str | None,
        typer.Option(
            help="How the scores of the model classes of one data class combine: 'max' or 'sum'; "
            "default: max."
        ),
    ] = None


@dataclass(frozen=True)
class CountedImages:
    """Which images a sweep measures."""

    images: Annotated[
        str | None,
        typer.Option(help="Images that count: 'right' at level 0, or 'all'; default: right."),
    ] = None
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Degrade only the images that a reference model gets right: a model, or the "
            "folder of its run."
        ),
    ] = None


@dataclass(frozen=True)
class InferenceOptions:
    """How images are read, and the batch size."""

    on_error: Annotated[
        str | None,
        typer.Option(help="At a sample that cannot be decoded: 'stop' or 'skip'; default: stop."),
    ] = None
    batch: Annotated[
        int | None, typer.Option(help="Images per batch; default: 16, on a GPU 64.")
    ] = None
    workers: Workers = None


@dataclass(frozen=True)
class EngineOptions:
    """Where inference runs."""

    engine: Annotated[
        str | None,
        typer.Option(
            help="Where inference runs: 'local', 'local(processes=4)', 'ray(gpus=1)'; "
            "default: local."
        ),
    ] = None
    address: Annotated[
        str | None,
        typer.Option(
            help="Address of the Ray cluster, e.g. 'auto'; default: a cluster on this machine."
        ),
    ] = None


@dataclass(frozen=True)
class CacheOptions:
    """The cache of predictions."""

    cache: Annotated[
        str | None,
        typer.Option(
            "--cache",
            help="Folder of the prediction cache; default: $STEADYEYE_CACHE, or "
            "~/.cache/steadyeye/answers.",
        ),
    ] = None
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Do not use the prediction cache.")
    ] = False


@dataclass(frozen=True)
class ProgressOptions:
    """How progress is shown."""

    progress: Annotated[
        str,
        typer.Option(
            "--progress",
            help="Progress on stderr: 'bar', 'json' (one line per event) or 'none'.",
        ),
    ] = "bar"
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the result, no progress.")] = (
        False
    )

    @property
    def form(self) -> str:
        """`bar`, `json` or `none`: the value of --progress, or `none` with --quiet."""
        return "none" if self.quiet else self.progress


JOB_OPTIONS = frozenset(
    {"data", "out", "metrics", "class_map", "class_list", "reduce", "on_error", "batch", "workers"}
    | {"engine", "address", "cache", "operators", "levels", "seed", "fast"}
)
"""Options with the same name in a job."""


def command(name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that registers a function as a command of `app`.

    A parameter whose type is one of the groups above, or any dataclass, gives the command an option
    for each of its fields, in its place; the function gets them as one object. Every command has
    one more option, for the code that files may name.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        # one line per paragraph, which Typer wraps; it keeps other line ends
        paragraphs = (function.__doc__ or "").split("\n\n")
        text = "\n\n".join(" ".join(part.split()) for part in paragraphs)
        app.command(name, help=text)(expand_groups(function))
        return function

    return register


def expand_groups(function: Callable[..., None]) -> Callable[..., None]:
    """The function with the fields of its dataclass parameters as parameters of their own.

    Its last parameter is `allow_code`, the code that is allowed before the function is called.
    """
    groups: dict[str, type[Any]] = {}
    parameters: list[Parameter] = []
    for parameter in signature(function).parameters.values():
        kind = parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            groups[parameter.name] = kind
            parameters += signature(kind).parameters.values()
        else:
            parameters.append(parameter)
    parameters.append(
        Parameter("allow_code", Parameter.KEYWORD_ONLY, default=None, annotation=AllowedCode)
    )
    parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]

    def call(**values: Any) -> None:
        allow_code(*values.pop("allow_code") or ())
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        function(**values)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return call


def job_flags(*groups: Any, **options: Any) -> dict[str, Any]:
    """The given options by their names in a job; omitted ones are None or empty.

    `groups`: groups of options; `options`: more of them, by name.
    """
    values = {field.name: getattr(group, field.name) for group in groups for field in fields(group)}
    values |= options
    flags = {name: value for name, value in values.items() if name in JOB_OPTIONS}
    if "model" in values:
        flags["models"] = values["model"]
    for name in ("metrics", "operators"):
        flags[name] = join_options(flags.get(name))
    if values.get("no_cache"):
        flags["cache"] = "off"
    if "fast" in flags:
        # that it was not asked for says nothing against a job that does
        flags["fast"] = flags["fast"] or None
    return flags


def check_suffix(path: str | None, content: str, known: Sequence[str]) -> None:
    """Raises `UsageError` for a file with another suffix, which would be overwritten.

    `content`: what is written to it. `known`: the suffixes that it may have. None: no file.
    """
    if path is not None and Path(path).suffix.lower() not in known:
        raise UsageError(f"cannot write {content} as '{path}'; name it {' or '.join(known)}")


def join_options(texts: Sequence[str] | None) -> str | None:
    """One comma-separated list of an option's values; None if it was not given."""
    return ", ".join(texts) if texts else None


def check_given_once(commands: Mapping[str, Any], arguments: Sequence[str]) -> None:
    """Raises `UsageError` for an option that takes one value and is given twice.

    `commands`: by name; `arguments`: those of the command line. Click silently uses the last of
    two.
    """
    if not arguments or arguments[0] not in commands:
        return
    options = arguments[1 : arguments.index("--")] if "--" in arguments else arguments[1:]
    counts = Counter(word.partition("=")[0] for word in options if word.startswith("--"))
    for option in commands[arguments[0]].params:
        times = sum(counts[name] for name in option.opts)
        # an argument is no option; one that takes several values, or counts, may come again
        once = option.param_type_name == "option" and not (option.multiple or option.is_flag)
        if once and times > 1:
            raise UsageError(f"{option.opts[0]} is given {times} times; give it once")


TEXT: dict[Any, type[str | Path]] = {str: str, list[str]: str, Path: Path, list[Path]: Path}
NUMBERS = {int: "a whole number", float: "a number"}


def keep_text(command: Any) -> None:
    """Lets options take text, paths and defaults without pydantic; others are converted as before.

    Typer 0.29 converts the value of every option by pydantic, which takes 0.1 s of a processor to
    import: more than most commands whose options are text. Earlier versions do not use it.
    """
    for parameter in (*command.params, command.get_help_option(typer.Context(command))):
        kind = getattr(parameter, "type_descriptor", None)
        if kind is not None and not kind.parameter_info.parser:
            convert = parameter.process_value
            parameter.process_value = partial(_take, parameter, kind, convert)


def _take(parameter: Any, kind: Any, convert: Any, context: Any, value: Any) -> Any:
    """The value of an option: as given if it is text or a path, or if it may be left out and was.

    `kind`: Typer's description of its type. `convert`: what Typer does with any other value, and
    with one that is missing. Raises `UsageError` for what is empty, or not the number it must be.
    """
    several = parameter.multiple or parameter.nargs != 1
    texts = value if several and isinstance(value, list | tuple) else [value]
    if parameter.param_type_name == "option" and "" in texts and parameter.default != "":
        # as of a shell's variable that is not set: it would count as left out, or as this folder
        raise UsageError(f"{parameter.opts[0]} is empty; give a value, or leave it out")
    if value is None and not parameter.required:
        taken: Any = () if several else None
    elif kind.annotation in TEXT and texts and all(isinstance(text, str | Path) for text in texts):
        make = TEXT[kind.annotation]
        taken = list(map(make, texts)) if several else make(value)
    elif type(value) is kind.annotation:
        taken = value  # a flag, or the default
    elif kind.annotation in NUMBERS and value is not None:
        try:
            return convert(context, value)
        except typer.BadParameter as error:
            raise UsageError(f"{parameter.opts[0]} {value}: give {_say_number(kind)}") from error
    else:
        return convert(context, value)
    return parameter.callback(context, parameter, taken) if parameter.callback else taken


def _say_number(kind: Any) -> str:
    """What an option of numbers takes: `a whole number from 0 to 65,535`."""
    least, most = kind.parameter_info.min, kind.parameter_info.max
    if most is not None:
        return f"{NUMBERS[kind.annotation]} from {least:,g} to {most:,g}"
    return NUMBERS[kind.annotation] + ("" if least is None else f" of {least:,g} or more")
