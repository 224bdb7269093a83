"""The commands that build a reviewed set."""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from steadyeye.cli.options import app, expand_groups
from steadyeye.cli.review_tables import build_tables
from steadyeye.cli.terminal import console, progress_console, say, show, show_table
from steadyeye.core.errors import UsageError, unknown

SetRoot = Annotated[Path, typer.Argument(help="Folder of the set.")]
Where = Annotated[
    str | None,
    typer.Option(
        "--database", help="Database, postgresql://…; default: SQLite in the set's folder."
    ),
]
FORMS = ("table", "json")


@dataclass(frozen=True)
class People:
    """The people that a command names: reviewers, new links, revoked links."""

    names: Sequence[str]
    renewed: Sequence[str]
    revoked: Sequence[str]


@dataclass(frozen=True)
class ServeOptions:
    """The address of a review, its reviewers, and its database."""

    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 or :: for all of this machine's.")
    ] = "127.0.0.1"
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 for a free one.", min=0, max=65535)
    ] = 8000
    name: Annotated[
        list[str] | None,
        typer.Option("--reviewer", help="Name of a reviewer, added if new; may be repeated."),
    ] = None
    renew: Annotated[
        list[str] | None,
        typer.Option("--renew", help="Name of a reviewer who gets a new link; may be repeated."),
    ] = None
    revoke: Annotated[
        list[str] | None,
        typer.Option(
            "--revoke", help="Name of a reviewer whose link and sessions end; may be repeated."
        ),
    ] = None
    idle: Annotated[
        float,
        typer.Option("--idle-hours", help="Hours without a request until sign-out.", min=0.1),
    ] = 72
    whole: Annotated[
        float,
        typer.Option("--session-days", help="Days from sign-in to sign-out at most.", min=0.1),
    ] = 30
    url: Annotated[
        str | None, typer.Option(help="Public address of a proxy, e.g. https://review.example.org.")
    ] = None
    database: Where = None

    @property
    def people(self) -> People:
        """The people that the options name."""
        return People(self.name or [], self.renew or [], self.revoke or [])


@app.command()
@expand_groups
def review(root: SetRoot, serving: ServeOptions) -> None:
    """Serve a set for review in the browser, and print a private link per reviewer."""
    check_installed()
    from steadyeye.data.annotations import review_set

    folder = review_set.read(root)
    if folder.content.get("kind") == "labels":
        raise UsageError(f"'{root}' is a label study; serve it with `steadyeye label RUN`")
    serve(folder, serving)


def serve(
    folder: Any, options: ServeOptions, begin_study: Callable[[Any], Any] | None = None
) -> None:
    """Serves a set, and prints the links of its reviewers.

    `begin_study`: of a label study; called with the database, it returns the study that the app
    shows.
    """
    from steadyeye.review import database as databases
    from steadyeye.review.protocol.reviewers import DAY, Lifetime, read_key
    from steadyeye.review.protocol.stages import read_plan
    from steadyeye.review.web import server
    from steadyeye.review.web.access import LINK, Access
    from steadyeye.review.web.app import build_app

    lifetime = Lifetime(options.idle * 3600, options.whole * DAY)
    url = server.read_public_url(options.url) if options.url else None
    read_plan(folder.content)  # what is wrong with it is told on any port
    # before anything is changed or printed: a second server of a review stops here
    listener = server.listen(options.host, options.port)
    key = read_key(folder.root)
    access = Access(url, key=key, lifetime=lifetime)
    data = databases.connect(options.database or databases.default_url(folder.root))
    public = [server.bracket(urlsplit(access.url).hostname or "")] if access.url else []
    hosts = [*listener.trusted_hosts, *public]
    web = build_app(folder, data, hosts, access, begin_study(data) if begin_study else None)
    base, *others = [access.url] if access.url else listener.urls
    for person, token in _list_links(data, web.state.rules.plan, key, options.people):
        no_link = f"has no link; make a new one with --renew {shlex.quote(person)}"
        show(f"{person}: {base}{LINK}{token}" if token else f"{person}: {no_link}")
    show(f"reviewing {folder.name} at {base}; Ctrl-C stops, nothing is lost")
    if others:
        show(f"the same links work at {', '.join(others)}")
    if listener.public and not access.secure:
        say(f"warning: {PLAIN_HTTP}", to=progress_console)
    server.serve(web, listener, proxy=bool(access.url))


PLAIN_HTTP = (
    "plain HTTP: anyone on the network can read links and answers; on a network that you do not "
    "trust, serve on 127.0.0.1 behind a proxy with TLS (--url https://…)"
)


def _list_links(data: Any, plan: Any, key: bytes, people: People) -> list[tuple[str, str | None]]:
    """(name, token) of the admin and of the chosen reviewers, or of all without a choice.

    New reviewers are added. The token is None if there is no link to show.
    """
    from steadyeye.review.protocol import reviewers
    from steadyeye.review.workflow import members

    with data.name_failures(), data.writing() as connection:
        present = reviewers.list_reviewers(connection)
        known = {person.name for person in present}
        if not any(person.admin for person in present):
            reviewers.add_reviewer(connection, reviewers.ADMIN, admin=True, key=key)
            known.add(reviewers.ADMIN)
        names = dict.fromkeys(map(reviewers.clean_name, people.names))
        for name in names:
            if name not in known:
                reviewers.add_reviewer(connection, name, joint=plan.joint, key=key)
        for name in people.revoked:
            members.end_link(connection, plan, name)
        for name in people.renewed:
            members.renew_link(connection, plan, name, key)
        chosen = {*names, *people.renewed, *people.revoked}
        return [
            (person.name, reviewers.find_token(connection, person.name, key))
            for person in reviewers.list_reviewers(connection)
            if person.admin or not chosen or person.name in chosen
        ]


@app.command("review-status")
def review_status(
    root: SetRoot,
    runs: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder of a run on the set, to show how the review changes its numbers; may be "
            "repeated."
        ),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="Format to print: 'table' or 'json'.")
    ] = "table",
    check: Annotated[
        bool, typer.Option("--check", help="Compare the stored counts with a recount of votes.")
    ] = False,
    database: Where = None,
) -> None:
    """Show the progress of a review: stages, reviewers, agreement."""
    if form not in FORMS:
        raise unknown("format", form, FORMS)
    check_installed()
    from steadyeye.review.results.recount import require_equal_counts
    from steadyeye.review.results.status import summarise

    folder, plan, data = _open_set(root, database)
    with data.name_failures(), data.reading() as connection:
        if check:
            require_equal_counts(connection, plan)
        summary = {**summarise(connection, folder, plan)}
        if runs:
            summary["impact"] = _impact(connection, folder, plan, runs)
    if form == "json":
        console.print_json(json.dumps(summary))
        return
    say(f"{summary['set']}: progress of the review")
    for table in build_tables(summary):
        if table.rows:
            show("")
            show_table(table.columns, table.rows, table.numbers)
    step = summary["next"]
    if step:
        show("")
        show(f"done: {step['do']} with {step['command']}")
    if check:
        show("the stored counts equal a recount of all votes")


@app.command("review-audit")
def review_audit(
    root: SetRoot,
    most: Annotated[
        float,
        typer.Option(help="Largest tolerated share of wrong among accepted neighbours, 0…1."),
    ] = 0.01,
    seed: Annotated[int, typer.Option(help="Random seed of the sample.")] = 0,
    database: Where = None,
) -> None:
    """Ask people about a random sample of undecided pairs, then accept the rest in bulk."""
    check_installed()
    _, plan, data = _open_set(root, database)
    from steadyeye.review.bulk.audit import run_audit

    with data.name_failures():
        say(data.write(lambda connection: run_audit(connection, plan, most, seed)))


@app.command("review-export")
def review_export(
    root: SetRoot,
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    formats: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Formats to write, separated by commas: set, coco, pmsets, mot, labels, "
            "label_studio, cvat; default: set for frames, coco for boxes, labels for label "
            "studies.",
        ),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave out undecided items instead of refusing them.")
    ] = False,
    database: Where = None,
) -> None:
    """Export the accepted items as a set to evaluate, or the open ones for another tool."""
    check_installed()
    from steadyeye.data.annotations import review_set
    from steadyeye.review.interchange import formats as interchange
    from steadyeye.review.studies.study_folder import EARLIER
    from steadyeye.review.workflow import queue

    names = interchange.choose_formats(review_set.read(root), formats)
    asks = bool(set(names) & set(interchange.TOOLS))
    # labels of earlier studies may be enough, so that nobody was asked
    folder, plan, data = _open_set(root, database, begin=asks or (root / EARLIER).is_file())
    if asks:
        with data.name_failures(), data.writing() as connection:
            queue.add_set_items(connection, folder, plan)
    with data.name_failures(), data.reading() as connection:
        every = interchange.export_formats(
            connection, folder, plan, out, names=names, partial=partial
        )
    for name, counts in zip(names, every, strict=True):
        for kind, count in counts.items():
            show(f"{kind.replace('_', ' ')}: {count:,}")
        for line in interchange.suggest_next(name, out, plan):
            show(line)


@app.command("review-import")
def review_import(
    root: SetRoot,
    file: Annotated[
        Path,
        typer.Argument(help="Export of Label Studio (JSON) or of CVAT (CVAT for images 1.1, XML)."),
    ],
    tool: Annotated[
        str, typer.Option("--from", help="Tool that wrote the file: 'label_studio' or 'cvat'.")
    ],
    prefix: Annotated[
        str,
        typer.Option(
            "--reviewer-prefix",
            help="Text before each annotator's name in the name of the reviewer, e.g. 'ls '.",
        ),
    ] = "",
    annotator: Annotated[
        str, typer.Option(help="Annotator of the answers for which the file names none.")
    ] = "",
    database: Where = None,
) -> None:
    """Import decisions that people made in Label Studio or CVAT."""
    check_installed()
    from steadyeye.data.annotations import review_set
    from steadyeye.review.interchange import formats
    from steadyeye.review.interchange.answers import import_annotations
    from steadyeye.review.workflow import queue
    from steadyeye.review.workflow.decisions import read_rules

    annotations = formats.find_reader(tool)(review_set.read(root), file, annotator)
    folder, plan, data = _open_set(root, database, begin=True)
    rules = read_rules(folder)
    with data.name_failures(), data.writing() as connection:
        queue.add_set_items(connection, folder, plan)
        counts = import_annotations(connection, rules, annotations, prefix)
    for kind, count in counts.items():
        show(f"{kind.replace('_', ' ')}: {count:,}")


def _open_set(root: Path, database: str | None, *, begin: bool = False) -> tuple[Any, Any, Any]:
    """The set in a folder, its plan and its database.

    Raises `UsageError` if its review has not begun, unless `begin`, and if the database holds the
    review of another set.
    """
    from steadyeye.data.annotations import review_set
    from steadyeye.review import database as databases
    from steadyeye.review.protocol.stages import read_plan
    from steadyeye.review.workflow.same_set import check_same_set

    folder = review_set.read(root)
    if not begin and database is None and not (root / "review.sqlite").is_file():
        again = f"steadyeye review {shlex.quote(str(root))}"
        raise UsageError(f"'{root}' has no review yet; start one with `{again}`")
    data = databases.connect(database or databases.default_url(root))
    plan = read_plan(folder.content)
    with data.name_failures(), data.reading() as connection:
        check_same_set(connection, folder, plan)
    return folder, plan, data


def check_installed() -> None:
    """Raises `UsageError` if a package that the review needs is not installed."""
    try:
        import fastapi  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ModuleNotFoundError as error:
        from steadyeye.core import plugins

        raise plugins.not_installed("the review", error, "review") from error


def _impact(connection: Any, folder: Any, plan: Any, runs: Sequence[Path]) -> list[dict[str, Any]]:
    from steadyeye.predictions.read import cells, read
    from steadyeye.review.results.impact import measure_impact
    from steadyeye.review.results.verdicts import judge_frames

    if folder.content.get("kind") == "boxes":
        raise UsageError(
            "the impact of a review is computed for frames, not boxes; leave out --runs, or "
            "export the boxes and evaluate them"
        )
    accepted = judge_frames(connection, folder, plan)
    return [
        asdict(change)
        for run in runs
        for cell in cells(run)
        for change in measure_impact(read(*cell), folder, plan, accepted)
    ]
