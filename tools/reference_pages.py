"""Writes the reference from the code, so that new plugins and options are documented.

A hook of MkDocs. One page per module: of every folder of plugins and of the modules in `INTERFACE`;
one page for the command line, from the command tree itself.
"""

import ast
import typing
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyeye.core import plugins

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "steadyeye"
KINDS: Mapping[str, tuple[str, str]] = {
    "metrics": (
        "Metrics",
        'Asked for by name: `--metrics "accuracy, pm_k(k=5)"`, `run.pm_k(5)`, '
        '`steadyeye gate --require "pm_k(k=10) >= 70%"`.',
    ),
    "operators": (
        "Operators",
        'What degrades an image, level by level: `--operators "jpeg, white_fog"`. '
        "The same operators stand under *augment* of a training job.",
    ),
    "sources": (
        "Sources",
        "Where images and labels come from: `--data \"video(path='clip.mp4')\"`.",
    ),
    "models": ("Models", "How a model is loaded: `--model \"onnx(path='model.onnx')\"`."),
    "analyses": (
        "Analyses",
        "The sections of a report. Each is there where the data and the runs have what it needs.",
    ),
    "probes": (
        "Probes",
        'What `steadyeye explain` does: `--analyses "patch_shuffle, background"`.',
    ),
}
INTERFACE: Mapping[str, tuple[str, ...]] = {
    "steadyeye": ("api",),
    "Predictions and results": (
        "core.types",
        "core.predictions",
        "core.result_lookup",
        "core.report_types",
        "core.spec",
        "core.plugins",
        "core.errors",
    ),
    "Statistics": (
        "core.pm_sets",
        "core.stats.intervals",
        "core.stats.block_bootstrap",
        "core.stats.multiple_testing",
    ),
    "Detection": (
        "core.boxes",
        "metrics.detection.box_groups",
        "metrics.detection.matching",
        "metrics.detection.average_precision",
    ),
    "Degradation": (
        "degradation.operator",
        "degradation.failure_search",
        "degradation.failure_points",
    ),
    "Videos": ("data.video.label_sidecar", "data.video.shot_detection"),
    "Unlabelled footage": ("metrics.sequences.answer_runs",),
    "Measurement": (
        "metrics.covariates.pm_set_measures",
        "core.stats.logistic",
    ),
    "Mining and review": (
        "explain.mining.causes",
        "explain.mining.candidates",
        "explain.mining.crops",
        "core.review_filter",
    ),
    "Explanation": (
        "explain",
        "explain.targets",
        "explain.context",
        "explain.embedding.density_ratio",
        "explain.embedding.regions",
        "explain.embedding.blind_spots",
    ),
    "Models and classes": (
        "models.preprocessing.recipe",
        "data.classes.class_lists",
        "data.classes.class_mapping",
    ),
    "Training": ("training.augmentation",),
}
GENERATED = "Generated"
"""The entry of the navigation that the pages replace."""


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    """The navigation with the written pages in it."""
    for group in config.nav or []:
        for entries in group.values():
            if isinstance(entries, list) and GENERATED in entries:
                at = entries.index(GENERATED)
                entries[at : at + 1] = list(list_entries())
    return config


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """The files of the site with the written pages among them."""
    from mkdocs.structure.files import File

    for path, text in write_pages():
        files.append(File.generated(config, path, content=text))
    return files


def list_entries() -> Iterator[dict[str, Any]]:
    """The entries of the navigation, in its order."""
    yield {"Command line": "reference/cli.md"}
    for kind, (title, _) in KINDS.items():
        pages = [{name: f"reference/{kind}/{name}.md"} for name in plugins.names(kind)]
        yield {title: [f"reference/{kind}/index.md", *pages]}
    groups = [
        {title: [{name_module(module): f"reference/api/{module}.md"} for module in modules]}
        for title, modules in INTERFACE.items()
    ]
    yield {"Python": ["reference/api/index.md", *groups]}


def write_pages() -> Iterator[tuple[str, str]]:
    """Path and text of every page."""
    yield "reference/cli.md", write_commands()
    for kind, (title, opening) in KINDS.items():
        rows = ["| name | description |", "|---|---|"]
        for name in plugins.names(kind):
            rows.append(f"| [`{name}`]({name}.md) | {read_summary(plugins.folder(kind) / name)} |")
            yield (
                f"reference/{kind}/{name}.md",
                write_page(name, f"{plugins.module(kind, name)}.{name}"),
            )
        yield f"reference/{kind}/index.md", "\n".join([f"# {title}", "", opening, "", *rows])
    lines = ["# Python", "", "Written from the docstrings of the code; one page a module.", ""]
    for title, modules in INTERFACE.items():
        lines += [f"## {title}", "", "| module | description |", "|---|---|"]
        for module in modules:
            summary = read_summary(PACKAGE.joinpath(*module.split(".")))
            lines.append(f"| [`{name_module(module)}`]({module}.md) | {summary} |")
            yield f"reference/api/{module}.md", write_page(name_module(module), name_module(module))
        lines.append("")
    yield "reference/api/index.md", "\n".join(lines)


def write_page(title: str, documented: str) -> str:
    """The page of one object of the package, with the page's heading."""
    lines = ["---", f"title: {title}", "---", "", f"::: {documented}"]
    options = ["    options:", "      heading_level: 1", "      show_root_full_path: true"]
    return "\n".join([*lines, *options[: 2 + (title == documented)], ""])


def name_module(module: str) -> str:
    """The import name of a module of the package."""
    return f"steadyeye.{module}"


def read_summary(module: Path) -> str:
    """The first line of a module's docstring, as a cell of a table."""
    file = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    opening = (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n\n")[0]
    return " ".join(opening.split()).replace("|", "\\|").removesuffix("::").strip()


def write_commands() -> str:
    """The page of the command line: every command with its arguments and options."""
    import typer

    from steadyeye.cli import COMMANDS
    from steadyeye.cli.options import app

    for name in COMMANDS:
        import_module(f"steadyeye.cli.{name}")
    tree: Any = typer.main.get_command(app)
    lines = [
        "# Command line",
        "",
        "Written from the command tree.",
        "",
        "| command | description |",
        "|---|---|",
    ]
    sections: list[str] = []
    for words, command in walk_commands(tree, ("steadyeye",)):
        opening = first_paragraph(command.help)
        anchor = "-".join(words[1:])
        lines.append(f"| [`{' '.join(words)}`](#{anchor}) | {opening} |")
        sections += write_command(words, command)
    return "\n".join([*lines, "", *sections])


def walk_commands(tree: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below `tree` with its words."""
    for name, command in tree.commands.items():
        if hasattr(command, "commands"):
            yield from walk_commands(command, (*words, name))
        else:
            yield (*words, name), command


def write_command(words: tuple[str, ...], command: Any) -> list[str]:
    """The section of one command."""
    annotations = typing.get_type_hints(command.callback)
    arguments = [
        parameter for parameter in command.params if parameter.param_type_name == "argument"
    ]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = " ".join([*words, *map(name_argument, arguments), "[OPTIONS]" if options else ""])
    lines = [
        f"## {' '.join(words[1:])}",
        "",
        command.help or "",
        "",
        "```",
        usage.strip(),
        "```",
        "",
    ]
    rows = [
        f"| {spell(parameter, annotations.get(parameter.name))} | {describe(parameter)} |"
        for parameter in (*arguments, *options)
        if not parameter.hidden
    ]
    return [*lines, "| option | description |", "|---|---|", *rows, ""] if rows else lines


def name_argument(argument: Any) -> str:
    """An argument as the usage line has it."""
    name = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def spell(parameter: Any, annotation: Any) -> str:
    """How a parameter is written on the command line, with the kind of its value."""
    if parameter.param_type_name == "argument":
        return f"`{name_argument(parameter)}`"
    names = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
    kinds = {int: "whole number", float: "number", Path: "path", str: "text"}
    parts = {annotation, *typing.get_args(annotation)}
    parts |= {inner for part in parts for inner in typing.get_args(part)}
    value = next((word for kind, word in kinds.items() if kind in parts), "")
    return names if parameter.is_flag else f"{names} *{value}*"


def describe(parameter: Any) -> str:
    """The help of a parameter and its default."""
    text = " ".join((parameter.help or "").split()).replace("|", "\\|")
    if parameter.default not in (None, False, "", []) and not callable(parameter.default):
        text += f" Default: `{parameter.default}`."
    return text


def first_paragraph(text: str | None) -> str:
    """The first paragraph of a help text, on one line."""
    return " ".join((text or "").partition("\n\n")[0].split()).replace("|", "\\|")
