"""`steadyeye mine` and `explain`: confident mistakes of detectors, and explanations of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from steadyeye.cli.progress import Bars, Lines, watching
from steadyeye.cli.run import NECESSARY, read_job
from steadyeye.cli.run_report import show_report
from steadyeye.cli.terminal import say, show, show_table
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of, quote_word

if TYPE_CHECKING:
    from steadyeye.core.storage.files import Place
    from steadyeye.core.types import Image, Source
    from steadyeye.explain.mining.run import Mined, MiningSettings


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
def mine(
    *,
    out: Annotated[str, typer.Option(help="Folder of the candidates.")],
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of finished runs, or files of detections as COCO results."),
    ] = None,
    model: Models = None,
    data: Data = None,
    score: ConfidentScore = 0.8,
    causes: Annotated[
        str, typer.Option(help="Causes to include, separated by commas; 'unverified' is one more.")
    ] = "misclassification,out_of_distribution,background",
    rank: Annotated[
        str, typer.Option(help="Order of the candidates: 'confidence' or 'novelty'.")
    ] = "confidence",
    limit: Annotated[int, typer.Option(help="Maximum number of candidates per class.")] = 50,
    class_map: ClassMap = None,
    inference: InferenceOptions,
    cache: CacheOptions,
    display: ProgressOptions,
) -> None:
    """Find confident mistakes of detectors for review. Resumes like `run`."""
    from steadyeye.core.storage.run_lock import hold_run
    from steadyeye.explain.mining import run

    names = tuple(cause.strip() for cause in causes.split(",") if cause.strip())
    selection = run.MiningSettings(score=score, causes=names, rank=rank, limit=limit)
    settings = {"model": model, "data": data, "out": out, "class_map": class_map}
    flags, folder = job_flags(inference, cache, **settings), Path(out)
    with watching(display.form) as watcher:
        runs, sources = _runs(inputs or [], flags, watcher)
        mined = run.mine(runs, selection, watcher.begin, sources)
        with hold_run(folder):
            _write(folder, mined, runs, watcher.begin("images of candidates", None))
    _print(folder, mined)


def _runs(
    inputs: Sequence[Path], flags: Mapping[str, Any], watcher: Bars | Lines
) -> tuple[list["Place"], list["Source"]]:
    """The finished runs to mine: the given ones, or one that is computed or continued in --out."""
    from steadyeye.predictions.json_record import check_results
    from steadyeye.runner import job, saved_detections, validate
    from steadyeye.runner.run import run as complete

    check_results(Path(flags["out"]), "mine")
    has_job = bool(flags["models"] or flags["data"])
    if inputs and all((path / "run.json").is_file() for path in inputs):
        if has_job:
            raise UsageError(
                "a finished run has its own models and data; leave out --model and --data"
            )
        return list(inputs), []
    files = [path for path in inputs if path.is_file()]
    if len(files) < len(inputs):
        other = next(path for path in inputs if not path.is_file())
        raise UsageError(
            f"'{other}' is neither a finished run nor a file of detections; give runs or such files"
        )
    if files and flags["models"]:
        raise UsageError("--model does not go with files of detections; give one of the two")
    if not files:
        checked = validate.check(read_job(None, flags, necessary=NECESSARY), detection_for="mine")
        done = complete(checked, watcher, command="mine")
        return [done], [task.source for task in checked.tasks]
    saved: list[Any] = [saved_detections.load(file, None) for file in files]
    settings = {**flags, "models": list(map(str, files))}
    checked = validate.with_models(job.read(None, settings), saved)
    of_mark = {model.fingerprint: model for model in saved}
    by_mark = {mark: saved_detections.predict(model) for mark, model in of_mark.items()}
    checked = replace(
        checked,
        tasks=tuple(saved_detections.ready(of_mark[t.model.fingerprint], t) for t in checked.tasks),
    )
    done = complete(
        checked,
        watcher,
        lambda task, *rest: by_mark[task.model.fingerprint](task, *rest),
        command="mine",
    )
    return [done], [task.source for task in checked.tasks]


def _write(
    out: Path, mined: "Mined", runs: Sequence["Place"], advance: Callable[[int], None]
) -> None:
    """Writes candidates.json, the report and, if there are pictures, the set to review."""
    from steadyeye.core.storage.files import encode, write_file
    from steadyeye.data.annotations import review_set
    from steadyeye.data.images.image_file import ImageFile
    from steadyeye.report import build
    from steadyeye.report import mined as results
    from steadyeye.review.sampling.image_store import store_image
    from steadyeye.review.sampling.sampling import store_boxes

    def place(image: Callable[[], "Image"]) -> str:
        name, _ = store_image(out, image)
        return review_set.image_path(out, name).relative_to(out / "images").as_posix()

    content = results.coco(mined, place)
    origin = results.origin(content)
    present = _read_fingerprint(out)
    if present not in (None, origin["fingerprint"]):
        raise UsageError(
            f"'{out}' holds a set of other candidates, which people may be reviewing"
            f"{_describe_other_settings(out, content['info'])}; choose another --out"
        )
    write_file(out / "candidates.json", encode(content))
    if mined.ranked and mined.pictured and present is None:
        stored = (image["file_name"] for image in content["images"])
        paths = dict(zip(results.own_names(content), stored, strict=True))

        def picture(file: str) -> ImageFile:
            return ImageFile(out / "images" / paths[file])

        store_boxes(results.build_candidates(mined, content), picture, out, origin, advance)
    document = results.document(mined, runs, [_command(out, mined.settings, runs)])
    if mined.pictured:
        build.store_pictures(out, list(mined.sources.values()), document)
    build.save(document, [out], [out / "report.html"])


def _read_fingerprint(out: Path) -> str | None:
    """The fingerprint of the candidates of the set in a folder; None without a set."""
    from steadyeye.data.annotations import review_set

    if not (out / "set.json").is_file():
        return None
    sources = review_set.read(out).content.get("sources") or [{}]
    return str(sources[0].get("fingerprint", ""))


def _describe_other_settings(out: Path, after: Mapping[str, Any]) -> str:
    """The first setting that differs for the candidates in a folder, in words; '' for none."""
    from steadyeye.core.difference import describe_difference
    from steadyeye.core.storage.text_files import read_json

    path = out / "candidates.json"
    before = read_json(path, "candidates") if path.is_file() else None
    before = before.get("info") if isinstance(before, dict) else None
    if not isinstance(before, dict) or before == after:
        return ""
    return f": {describe_difference('candidates', before, after)}"


def _command(out: Path, selection: "MiningSettings", runs: Sequence["Place"]) -> str:
    """The command that mines the runs again."""
    causes = ",".join(selection.causes)
    flags = f"--score {selection.score:g} --causes {causes} --rank {selection.rank}"
    return (
        f"steadyeye mine {' '.join(quote_word(str(run)) for run in runs)} {flags} "
        f"--limit {selection.limit} --out {quote_word(str(out))}"
    )


def _print(out: Path, mined: "Mined") -> None:
    from steadyeye.report.mined import counts

    (above, *models), *rows = counts(mined)
    for i, model in enumerate(models, start=1):
        counted = [(row[i], row[0]) for row in rows]
        show_table(("n", above), counted, 1, heading=model)
    for note in mined.notes:
        say(note)
    many = len(mined.ranked)
    say(
        f"{number_of(many, 'candidate')} of {number_of(mined.mistakes, 'distinct mistake')}: "
        f"{out / 'candidates.json'}"
    )
    show_report(out)
    if many and mined.pictured:
        show(f"next: steadyeye review {quote_word(str(out))}")


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
