"""What the commands of a review do."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from steadyeye.cli.progress import Bars
from steadyeye.cli.work import console
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec


def sample(
    videos: Sequence[Path], out: Path, classes: str | None, drawn: Mapping[str, Any], quiet: bool
) -> None:
    """`steadyeye sample`."""
    from steadyeye.footage.sidecar import read
    from steadyeye.review.sampling import Sampling
    from steadyeye.review.sampling import sample as write
    from steadyeye.review.watched import watched

    listed = read(drawn["labels"]).classes
    how = Sampling(out.name, drawn, _classes(classes) or listed)
    specs = [Spec("video", {"path": str(path), **drawn}) for path in videos]
    with Bars(quiet) as watcher:
        frames = write(watched(specs, out, watcher.begin), out, how)
    console.print(f"{out}: {frames:,} frames; next: steadyeye review {out}", markup=False)


def _classes(text: str | None) -> Any:
    from steadyeye.classes.known import named, read

    if text is None:
        return None
    return named(dict.fromkeys(text.split(","))) if "," in text else read(text)


def serve(
    root: Path, address: tuple[str, int, str | None], names: Sequence[str], database: str | None
) -> None:
    """`steadyeye review`; the links are printed when reviewers are added, and never again."""
    _installed()
    import uvicorn

    from steadyeye.footage import set_folder
    from steadyeye.review import database as databases
    from steadyeye.review.app import app

    host, port, url = address
    folder = set_folder.read(root)
    data = databases.connect(database or databases.beside(root))
    base = url or f"http://{host}:{port}"
    hosts = ["127.0.0.1", "localhost", host, urlsplit(base).hostname or host]
    made = app(folder, data, hosts)
    for name, token in _links(data, made.state.rules.plan, names):
        console.print(f"{name}: {base}/r/{token}", markup=False)
    console.print(f"reviewing {folder.name} at {base}; Ctrl-C stops, nothing is lost")
    uvicorn.run(made, host=host, port=port, log_level="warning", proxy_headers=bool(url))


def _links(data: Any, plan: Any, names: Sequence[str]) -> Sequence[tuple[str, str]]:
    from steadyeye.review import people

    joint = [stage for stage, votes in plan.votes.items() if votes == 0]
    with data.writing() as connection:
        found = []
        if not any(one.admin for one in people.everyone(connection)):
            found.append(("admin", people.add(connection, "admin", admin=True)))
        found += [(name, people.add(connection, name, joint=joint)) for name in names]
    return found


def status(root: Path, database: str | None) -> None:
    """`steadyeye review-status`."""
    _installed()
    import json

    folder, plan, data = _opened(root, database)
    from steadyeye.review.status import status as told

    with data.reading() as connection:
        console.print_json(json.dumps(told(connection, folder, plan)))


def audit(root: Path, most: float, seed: int, database: str | None) -> None:
    """`steadyeye review-audit`."""
    _installed()
    _, plan, data = _opened(root, database)
    from steadyeye.review.auditing import audit as step

    told = data.write(lambda connection: step(connection, plan, most, seed))
    console.print(told, markup=False)


def export(root: Path, out: Path, database: str | None, *, partial: bool) -> None:
    """`steadyeye review-export`."""
    _installed()
    folder, plan, data = _opened(root, database)
    from steadyeye.review.exporting import export as write

    with data.reading() as connection:
        counts = write(connection, folder, plan, out, partial=partial)
    for name, count in counts.items():
        console.print(f"{name.replace('_', ' ')}: {count:,}", markup=False)
    console.print(f"next: steadyeye run --model … --data \"reviewed(root='{out}')\"", markup=False)


def _opened(root: Path, database: str | None) -> tuple[Any, Any, Any]:
    from steadyeye.footage import set_folder
    from steadyeye.review import database as databases
    from steadyeye.review import plan

    folder = set_folder.read(root)
    if database is None and not (root / "review.sqlite").is_file():
        raise UsageError(f"'{root}' was not reviewed yet; start with `steadyeye review {root}`")
    data = databases.connect(database or databases.beside(root))
    return folder, plan.read(folder.content), data


def _installed() -> None:
    try:
        import fastapi  # noqa: F401
        import krippendorff  # noqa: F401
        import sklearn  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ModuleNotFoundError as error:
        raise plugins.not_installed("the review", error) from error
