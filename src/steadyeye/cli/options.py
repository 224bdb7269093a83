"""The app that commands register with, and the options that several of them share."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from steadyeye.core.errors import UsageError

app = typer.Typer(
    help="Measure how steady a vision model is under natural change.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

JobFile = Annotated[Path | None, typer.Argument(help="A job file in TOML; options override it.")]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="A model, e.g. \"timm(name='resnet50.a1_in1k')\"."),
]
Data = Annotated[
    list[str] | None, typer.Option("--data", help="Data, e.g. \"video(path='clip.mp4', k=10)\".")
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
    typer.Option(help="Metrics, e.g. 'accuracy, pm_k(k=5)'; default: all that apply."),
]
ClassMap = Annotated[
    str | None,
    typer.Option(
        help="A file that maps model classes to data classes, or class lists that define their "
        "names: 'vid30', 'imagenet1k:classes.txt'."
    ),
]
Reduce = Annotated[
    str | None,
    typer.Option(help="Combine the scores of mapped classes by 'max' or 'sum'; default: max."),
]
ClassList = Annotated[
    str | None,
    typer.Option(
        help="Are the data's classes all that can occur ('closed') or not ('open')? "
        "Default: as the data say."
    ),
]
OnError = Annotated[
    str | None, typer.Option(help="If a sample cannot be decoded: 'stop' or 'skip'; default: stop.")
]
Batch = Annotated[int | None, typer.Option(help="Batch size; default: 16, on a GPU 64.")]
Workers = Annotated[int | None, typer.Option(help="Threads; default: one per core.")]
Engine = Annotated[
    str | None,
    typer.Option(
        help="Where inference runs: 'local', 'local(processes=4)', 'ray(gpus=1)'; default: local."
    ),
]
Address = Annotated[
    str | None, typer.Option(help="Ray cluster, e.g. 'auto'; default: one on this machine.")
]
Operators = Annotated[
    list[str] | None,
    typer.Option(
        "--operators", "--operator", help="Operators, e.g. 'all, gaussian_noise'; default: all."
    ),
]
Levels = Annotated[
    str | None,
    typer.Option(help="Levels: first:last:step or a list like 5,10,20; default: all, up to 30."),
]
Cache = Annotated[str | None, typer.Option("--cache", help="Folder of the prediction cache.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Do not use the prediction cache.")]
Shown = Annotated[
    str, typer.Option("--progress", help="bar, json (one line per event on stderr) or none.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")]
Formats = Annotated[
    str, typer.Option("--format", help="html, md, json, csv; separate several with commas.")
]

# what a wrong word on the command line raises; typer exports only what derives from it
ParsingError: type[Any] = typer.BadParameter.__mro__[1]

OF_JOB = {
    "model": "models",
    **{name: name for name in ("data", "out", "metrics", "class_map", "reduce", "on_error")},
    "class_list": "class_list",
    **{name: name for name in ("batch", "workers", "engine", "address", "cache")},
    **{name: name for name in ("operators", "levels", "seed", "fast", "overwrite")},
}
"""The options that a job knows, and what it calls them."""


def flags(context: typer.Context) -> dict[str, Any]:
    """What was asked of a job, by its own names; what was left out is None or empty."""
    found = {OF_JOB[name]: value for name, value in context.params.items() if name in OF_JOB}
    for name in ("metrics", "operators"):
        found[name] = join_options(found.get(name))
    if context.params.get("no_cache"):
        found["cache"] = "off"
    if "fast" in found:
        # that it was not asked for says nothing against a job that does
        found["fast"] = found["fast"] or None
    return found


def join_options(texts: Sequence[str] | None) -> str | None:
    """One comma-separated list of an option that was given several times; None where it was not."""
    return ", ".join(texts) if texts else None


def check_given_once(commands: Mapping[str, Any], arguments: Sequence[str]) -> None:
    """Raises `UsageError` for an option that takes one value and is given twice.

    `commands`: by name; `arguments`: those of the command line. Click takes the last of two in
    silence.
    """
    if not arguments or arguments[0] not in commands:
        return
    options = arguments[1 : arguments.index("--")] if "--" in arguments else arguments[1:]
    given = Counter(each.partition("=")[0] for each in options if each.startswith("--"))
    for option in commands[arguments[0]].params:
        times = sum(given[name] for name in option.opts)
        # an argument is no option; one that takes several values, or counts, may come again
        once = option.param_type_name == "option" and not (option.multiple or option.is_flag)
        if once and times > 1:
            raise UsageError(f"{option.opts[0]} is given {times} times; give it once")


def choose_progress(context: typer.Context) -> str:
    """How progress is shown: as --progress says, with --quiet not at all."""
    return "none" if context.params["quiet"] else str(context.params["progress"])
