"""What `mine` does: evaluate, mine, write, print what came out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyeye.cli.progress import ProgressWatcher, watching
from steadyeye.cli.run_work import ALL, read_job
from steadyeye.cli.terminal import say, show, show_table
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of

if TYPE_CHECKING:
    from steadyeye.core.storage.files import Place
    from steadyeye.core.types import Image, Source
    from steadyeye.explain.mining.run import Mined, Wanted


def mine(
    given: Sequence[Path], flags: Mapping[str, Any], how: Mapping[str, Any], shown: str
) -> None:
    """`steadyeye mine`; `given`: runs, or files of detections; `how`: what is mined."""
    from steadyeye.core.storage.run_lock import alone
    from steadyeye.explain.mining import run

    wanted = run.Wanted(**how)
    if not flags["out"]:
        raise UsageError("give --out, the folder of the candidates")
    out = Path(flags["out"])
    with watching(shown) as watcher:
        runs, sources = _runs(given, flags, watcher)
        mined = run.mine(runs, wanted, watcher.begin, sources)
        with alone(out):
            _write(out, mined, runs, watcher.begin("images of candidates", None))
    _print(out, mined)


def _runs(
    given: Sequence[Path], flags: Mapping[str, Any], watcher: ProgressWatcher
) -> tuple[list["Place"], list["Source"]]:
    """The finished runs to mine: those given, or one that is made, or gone on with, in --out."""
    from steadyeye.runner import job, saved_detections, validate
    from steadyeye.runner.run import run as complete

    asked = bool(flags["models"] or flags["data"])
    if given and all((each / "run.json").is_file() for each in given):
        if asked:
            raise UsageError("a finished run has its own models and data; leave --model and --data")
        return list(given), []
    files = [each for each in given if each.is_file()]
    if len(files) < len(given):
        other = next(each for each in given if not each.is_file())
        raise UsageError(f"'{other}' is neither a run nor a file of detections")
    if files and flags["models"]:
        raise UsageError("give models, or files of what they detected; not both")
    if not files:
        checked = validate.check(read_job(None, flags, necessary=ALL))
        return [complete(checked, watcher)], [task.source for task in checked.tasks]
    saved: list[Any] = [saved_detections.load(each, None) for each in files]
    named = {**flags, "models": [str(each) for each in files]}
    checked = validate.with_models(job.read(None, named), saved)
    of_mark = {each.fingerprint: each for each in saved}
    by_mark = {mark: saved_detections.predict(each) for mark, each in of_mark.items()}
    checked = replace(
        checked,
        tasks=tuple(saved_detections.ready(of_mark[t.model.fingerprint], t) for t in checked.tasks),
    )
    done = complete(
        checked, watcher, lambda task, *rest: by_mark[task.model.fingerprint](task, *rest)
    )
    return [done], [task.source for task in checked.tasks]


def _write(
    out: Path, mined: "Mined", runs: Sequence["Place"], advance: Callable[[int], None]
) -> None:
    """Writes candidates.json, the set to review where there are pictures, and the report."""
    from steadyeye.core.storage.files import encode, write_file
    from steadyeye.data.annotations import review_set
    from steadyeye.data.images.image_file import ImageFile
    from steadyeye.report import build
    from steadyeye.report import mined as results
    from steadyeye.review.sampling.box_sampling import store_boxes
    from steadyeye.review.sampling.image_store import keep

    def keep_image(image: Callable[[], "Image"]) -> str:
        name, _ = keep(out, image)
        return review_set.image_path(out, name).relative_to(out / "images").as_posix()

    content = results.coco(mined, keep_image)
    origin = results.origin(content)
    there = _set_of(out)
    if there not in (None, origin["fingerprint"]):
        raise UsageError(
            f"'{out}' holds a set of other candidates, which people may be reviewing; "
            "choose another --out"
        )
    write_file(out / "candidates.json", encode(content))
    if mined.found and mined.pictured and there is None:
        stored = (each["file_name"] for each in content["images"])
        paths = dict(zip(results.own_names(content), stored, strict=True))

        def picture(file: str) -> ImageFile:
            return ImageFile(out / "images" / paths[file])

        store_boxes(results.build_candidates(mined, content), picture, out, origin, advance)
    told = results.document(mined, runs, [_command(out, mined.wanted, runs)])
    if mined.pictured:
        build.store_pictures(out, list(mined.sources.values()), told)
    build.save(told, [out], [out / "report.html"])


def _set_of(out: Path) -> str | None:
    """The fingerprint of the candidates whose set a folder holds; None where it holds no set."""
    from steadyeye.data.annotations import review_set

    if not (out / "set.json").is_file():
        return None
    sources = review_set.read(out).content.get("sources") or [{}]
    return str(sources[0].get("fingerprint", ""))


def _command(out: Path, wanted: "Wanted", runs: Sequence["Place"]) -> str:
    """The command that mines the runs once more."""
    causes = ",".join(wanted.causes)
    flags = f"--score {wanted.score:g} --causes {causes} --rank {wanted.rank}"
    return f"steadyeye mine {' '.join(map(str, runs))} {flags} --limit {wanted.limit} --out {out}"


def _print(out: Path, mined: "Mined") -> None:
    from steadyeye.report.mined import counts

    (above, *models), *rows = counts(mined)
    for i, model in enumerate(models, start=1):
        counted = [(row[i], row[0]) for row in rows]
        show_table(("n", above), counted, 1, heading=model)
    for note in mined.notes:
        say(note)
    many = len(mined.found)
    show(
        f"{number_of(many, 'candidate')} of {number_of(mined.mistakes, 'mistake')}: "
        f"{out / 'candidates.json'}"
    )
    show(f"report: {(out / 'report.html').resolve()}")
    if many and mined.pictured:
        show(f"next: steadyeye review {out}")
