"""The sections of a report: the output of every analysis for the models on each source."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from steadyeye.core import plugins
from steadyeye.core.defaults import ANALYSES
from steadyeye.core.disk_columns import release_pages
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Section
from steadyeye.core.spec import parse
from steadyeye.core.types import Evaluated
from steadyeye.runner.validate import declared_readable


def sections(
    evaluated: Sequence[Evaluated], analyses: Sequence[str] = (), more: Sequence[str] = ()
) -> tuple[Section, ...]:
    """The sections of the analyses for the models on each source.

    `analyses`: the only ones, names or specs with arguments; the default ones if empty. `more`:
    further ones. A default analysis whose packages are not installed is left out: see
    `analyses_not_installed`. Raises `UsageError` for one of `more` whose columns no data has.
    """
    by_data = _by_data(evaluated)
    several = len({data for data, *_ in by_data}) > 1
    for name in more:
        if not any(_readable_analyses(models, [name]) for models in by_data.values()):
            needed = ", ".join(plugins.declaration("analyses", parse(name).name).columns or ())
            raise UsageError(f"{name} needs {needed}, which none of these runs has; leave it out")
    parts = []
    for (data, *_), models in by_data.items():
        for text in _readable_analyses(models, [*(analyses or ANALYSES), *more]):
            spec, requested = parse(text), text in analyses or text in more
            if not requested and plugins.declaration("analyses", spec.name).missing_packages:
                continue
            section = plugins.load("analyses", spec.name)(models, **spec.kwargs)
            release_pages()
            if section is not None and not section.empty:
                title = f"{section.title} · {data}" if several else section.title
                parts.append(replace(section, title=title))
    return tuple(sorted(parts, key=lambda section: section.order))


def analyses_not_installed(evaluated: Sequence[Evaluated]) -> str:
    """One line on the analyses that the data allow and whose packages are missing, or ""."""
    names = {name for models in _by_data(evaluated).values() for name in _readable_analyses(models)}
    declared = [plugins.declaration("analyses", name) for name in sorted(names)]
    lacking = [item for item in declared if item.missing_packages]
    if not lacking:
        return ""
    extras = {item.extra for item in lacking if item.extra}
    packages = {name for item in lacking for name in item.missing_packages if not item.extra}
    many = "1 section is" if len(lacking) == 1 else f"{len(lacking)} sections are"
    missing = ", ".join(sorted({name for item in lacking for name in item.missing_packages}))
    line = plugins.install_line(extras, sorted(packages))
    return f"{many} left out, because {missing} is not installed: {line}"


def _by_data(evaluated: Sequence[Evaluated]) -> Mapping[tuple[str, ...], list[Evaluated]]:
    """The models on each source, each with its predictions on the other sources."""
    by_data: dict[tuple[str, ...], list[Evaluated]] = {}
    for model in evaluated:
        complete = replace(model, other_datasets=_other_datasets(model, evaluated))
        by_data.setdefault(_about(model.predictions), []).append(complete)
    return by_data


def _readable_analyses(models: Sequence[Evaluated], names: Sequence[str] = ANALYSES) -> list[str]:
    """Those of the analyses that the columns of the models allow, each once.

    Under the names that the user gave.
    """
    columns = tuple(set.intersection(*(set(model.predictions.columns) for model in models)))
    every = dict.fromkeys(names)
    return [name for name in every if declared_readable("analyses", parse(name).name, columns)]


def _other_datasets(model: Evaluated, evaluated: Sequence[Evaluated]) -> tuple[Predictions, ...]:
    """The model's predictions on other data; for a probe, its detector's on the data."""
    own = model.predictions
    if own.probe:
        base = (own.probe["model"], own.probe["data"]["fingerprint"])
        tables = [other.predictions for other in evaluated]
        return tuple(p for p in tables if not p.probe and (p.model, p.fingerprint) == base)
    others = [other.predictions for other in evaluated if other.predictions.model == own.model]
    return tuple(
        p
        for p in others
        if not p.probe and p.data != own.data and p.model_classes == own.model_classes
    )


def _about(table: Predictions) -> tuple[str, ...]:
    """The key of a group: models on the same data, or the same probe of the same data."""
    if not table.probe:
        return (table.data,)
    data = table.probe["data"]
    return (data["name"], data["fingerprint"], table.probe["name"])
