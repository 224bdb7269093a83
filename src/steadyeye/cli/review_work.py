"""What the commands of a review do."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from steadyeye.cli.progress import watching
from steadyeye.cli.terminal import say, show
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.spec import Spec, parse


def sample(
    what: tuple[Sequence[Path], Sequence[str]],
    out: Path,
    classes: str | None,
    drawn: Mapping[str, Any],
    shown: str,
) -> None:
    """`steadyeye sample`; `what`: videos, and sources of other frames."""
    from steadyeye.data.video.label_sidecar import read
    from steadyeye.review.sampling.isolated_decoder import read_frames
    from steadyeye.review.sampling.merged_classes import Labelled, merge_classes, relabel_frames
    from steadyeye.review.sampling.sampling import Sampling
    from steadyeye.review.sampling.sampling import sample as write

    if (out / "run.json").is_file():
        raise UsageError(f"'{out}' holds a run; choose another --out for the set")
    videos, data = what
    if not videos and not data:
        raise UsageError("nothing to sample; give videos, --data, or --boxes with --images")
    specs = [Spec("video", {"path": str(path), **drawn}) for path in videos]
    others = [parse(text) for text in data]
    beside = read(drawn["labels"])
    lists = [Labelled(str(drawn["labels"]), beside.classes, beside.present)] * len(specs)
    for spec in others:
        source = plugins.build("sources", spec)
        present = frozenset(label for truth in source.truths for label in truth)
        lists.append(Labelled(str(spec), source.classes, present))
    merged, places = merge_classes(lists, _classes(classes))
    # data is drawn as its spec says, whatever the flags for videos
    drawn_from = {**(drawn if videos else {}), **({"data": list(data)} if data else {})}
    how = Sampling(out.name, drawn_from, merged)
    with watching(shown) as watcher:
        stored = (
            relabel_frames(read_frames([spec], out, watcher.begin), own)
            for spec, own in zip([*specs, *others], places, strict=True)
        )
        frames = write(chain.from_iterable(stored), out, how)
    show(f"{out}: {number_of(frames, 'frame')}; next: steadyeye review {out}")


def sample_boxes(
    boxes: Path | None, images: Path | None, out: Path, more: Sequence[Any], shown: str
) -> None:
    """`steadyeye sample --boxes`; `more`: what cannot be in the same set."""
    from steadyeye.review.sampling.box_sampling import sample_boxes as draw

    if more or boxes is None or images is None:
        raise UsageError("a set of boxes needs --boxes and --images, and no videos beside")
    with watching(shown) as watcher:
        pictures, found = draw(boxes, images, out, watcher.begin("images", None))
    show(
        f"{out}: {number_of(found, 'box')} in {number_of(pictures, 'image')}; next: steadyeye "
        f"review {out}"
    )


def _classes(text: str | None) -> Any:
    from steadyeye.data.classes.class_lists import classes_of_names, read

    if text is None:
        return None
    if "," not in text:
        return read(text)
    return classes_of_names(
        dict.fromkeys(" ".join(name.split()) for name in text.split(",") if name.strip())
    )


def serve(
    root: Path,
    address: tuple[str, int, str | None],
    people: tuple[Sequence[str], Sequence[str]],
    database: str | None,
) -> None:
    """`steadyeye review`; links are printed when they are made, and never again.

    `people`: names of reviewers to add, and of those who need a new link.
    """
    check_installed()
    import uvicorn

    from steadyeye.data.annotations import review_set
    from steadyeye.review.db import database as databases
    from steadyeye.review.web.app import app

    host, port, url = address
    folder = review_set.read(root)
    data = databases.connect(database or databases.beside(root))
    base = url or f"http://{host}:{port}"
    hosts = ["127.0.0.1", "localhost", host, urlsplit(base).hostname or host]
    made = app(folder, data, hosts)
    for name, token in _links(data, made.state.rules.plan, *people):
        show(f"{name}: {base}/r/{token}")
    show(f"reviewing {folder.name} at {base}; Ctrl-C stops, nothing is lost")
    uvicorn.run(made, host=host, port=port, log_level="warning", proxy_headers=bool(url))


def _links(
    data: Any, plan: Any, names: Sequence[str], renewed: Sequence[str]
) -> Sequence[tuple[str, str]]:
    from steadyeye.review.protocol import reviewers

    joint = [stage for stage, votes in plan.votes.items() if votes == 0]
    with data.writing() as connection:
        found = []
        if not any(one.admin for one in reviewers.everyone(connection)):
            found.append(("admin", reviewers.add(connection, "admin", admin=True)))
        found += [(name, reviewers.add(connection, name, joint=joint)) for name in names]
        found += [(name, reviewers.renew(connection, name)) for name in renewed]
    return found


def export(root: Path, out: Path, chosen: tuple[str | None, str | None], *, partial: bool) -> None:
    """`steadyeye review-export`; `chosen`: formats and database."""
    check_installed()
    from steadyeye.data.annotations import review_set
    from steadyeye.review.interchange import formats
    from steadyeye.review.workflow import items

    names = formats.choose_formats(review_set.read(root), chosen[0])
    asks = bool(set(names) & set(formats.TOOLS))
    folder, plan, data = open_set(root, chosen[1], begin=asks)
    if asks:
        with data.writing() as connection:
            items.fill(connection, folder, plan)
    for name in names:
        with data.reading() as connection:
            counts = formats.write(connection, folder, plan, out, name=name, partial=partial)
        for what, count in counts.items():
            show(f"{what.replace('_', ' ')}: {count:,}")
        for line in formats.following(name, out, plan):
            show(line)


def audit(root: Path, most: float, seed: int, database: str | None) -> None:
    """`steadyeye review-audit`."""
    check_installed()
    _, plan, data = open_set(root, database)
    from steadyeye.review.bulk.audit_workflow import audit as step

    told = data.write(lambda connection: step(connection, plan, most, seed))
    say(told)


def take(root: Path, file: Path, how: tuple[str, str, str], database: str | None) -> None:
    """`steadyeye review-import`; `how`: the tool, the prefix of names, the annotator."""
    check_installed()
    from steadyeye.data.annotations import review_set
    from steadyeye.review.interchange import formats
    from steadyeye.review.results.import_decisions import admit
    from steadyeye.review.workflow import items
    from steadyeye.review.workflow.decisions import Rules

    tool, prefix, annotator = how
    given = formats.reader(tool)(review_set.read(root), file, annotator)
    folder, plan, data = open_set(root, database, begin=True)
    rules = Rules(plan, folder.classes.names if folder.classes else (), folder.fingerprint)
    with data.writing() as connection:
        items.fill(connection, folder, plan)
        counts = admit(connection, rules, given, prefix)
    for what, count in counts.items():
        show(f"{what.replace('_', ' ')}: {count:,}")


def open_set(root: Path, database: str | None, *, begin: bool = False) -> tuple[Any, Any, Any]:
    """The set in a folder, its plan and its database.

    Raises `UsageError` where nobody reviewed it yet, unless `begin`.
    """
    from steadyeye.data.annotations import review_set
    from steadyeye.review.db import database as databases
    from steadyeye.review.protocol import plan

    folder = review_set.read(root)
    if not begin and database is None and not (root / "review.sqlite").is_file():
        raise UsageError(f"'{root}' was not reviewed yet; start with `steadyeye review {root}`")
    data = databases.connect(database or databases.beside(root))
    return folder, plan.read(folder.content), data


def check_installed() -> None:
    """Raises `UsageError` where a package that the review needs is absent."""
    try:
        import fastapi  # noqa: F401
        import krippendorff  # noqa: F401
        import sklearn  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ModuleNotFoundError as error:
        raise plugins.not_installed("the review", error, "review") from error
