"""`steadyeye explain`: why a detector is confidently wrong."""

from dataclasses import replace
from typing import Annotated

import typer

from steadyeye.cli.options import (
    CacheOptions,
    ClassMap,
    ConfidentScore,
    Data,
    InferenceOptions,
    Models,
    ProgressOptions,
    command,
    job_flags,
)
from steadyeye.cli.progress import watching
from steadyeye.cli.run import NECESSARY, read_job
from steadyeye.cli.run_report import show_report
from steadyeye.cli.terminal import say

ReferenceData = Annotated[
    str | None, typer.Option(help="Data to take correct detections from; default: --data.")
]
Probes = Annotated[
    str,
    typer.Option(
        help="Probes, e.g. 'patch_shuffle(repeats=5), background'; `steadyeye ls probes` lists all."
    ),
]


@command()
def explain(
    *,
    out: Annotated[str, typer.Option(help="Folder of the run.")],
    model: Models = None,
    data: Data = None,
    reference: ReferenceData = None,
    analyses: Probes = "patch_shuffle",
    score: ConfidentScore = 0.8,
    limit: Annotated[
        int | None,
        typer.Option(help="Maximum number of mistakes, sampled at random; default: all."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of the sample and the probes; default: 0.")
    ] = None,
    class_map: ClassMap = None,
    inference: InferenceOptions,
    cache: CacheOptions,
    display: ProgressOptions,
) -> None:
    """Explain a detector's confident mistakes. Resumes like `run`."""
    from steadyeye.explain import run
    from steadyeye.report import build
    from steadyeye.runner.short_forms import expand_data

    how = run.Explaining(analyses, reference, score, limit)
    progress = watching(display.form)
    data = [expand_data(text) for text in data or ()]
    if how.reference:
        how = replace(how, reference=expand_data(how.reference))
        # one that is among the data is computed once
        data = list(dict.fromkeys([*data, str(how.reference)]))
    settings = {"model": model, "data": data, "out": out, "class_map": class_map, "seed": seed}
    flags = job_flags(inference, cache, **settings)
    checked = run.check(read_job(None, flags, necessary=NECESSARY), how)
    with progress as watcher:
        explained = run.explain(checked, watcher)
    content = build.write_explanation(explained)
    for line in content.headline:
        say(line)
    for section in content.sections:
        say(section.title)
    show_report(explained.out)
