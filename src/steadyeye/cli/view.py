"""The command that shows runs: a list of those below a folder, or the report of one."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steadyeye.cli.options import command
from steadyeye.core.format import number_of

if TYPE_CHECKING:
    from steadyeye.core.storage.files import Place


@command()
def view(
    folder: Annotated[
        str,
        typer.Argument(
            help="Folder with runs below it, or folder of one run; also s3:// or gs://."
        ),
    ] = "runs",
    html: Annotated[
        Path | None, typer.Option(help="HTML file to write the list to; it opens without a server.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port of the list; default: 8420, or a free one."),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the list in a browser.")
    ] = True,
) -> None:
    """List the runs below a folder in the browser: sort, filter, compare, open their reports."""
    from steadyeye.core.errors import UsageError
    from steadyeye.core.storage.files import place
    from steadyeye.report.run_index import is_run

    root = place(folder)
    if not root.is_dir():
        raise UsageError(f"no folder '{folder}'; give the folder that your runs are in")
    if not isinstance(root, Path):
        if html is not None:
            raise UsageError(
                f"--html links to reports on this machine, and '{folder}' is in a store; leave "
                "it out"
            )
        _serve(root, port, browser)
    elif html is not None:
        _write(root, html, browser)
    elif is_run(root):
        _report(root, browser)
    else:
        _serve(root, port, browser)


def _serve(folder: "Place", port: int | None, browser: bool) -> None:
    from steadyeye.cli.terminal import show
    from steadyeye.report.run_server import serving

    try:
        with serving(folder, port) as server:
            show(f"runs in {folder}: {server.url}   (Ctrl-C stops the server)")
            sys.stdout.flush()
            if browser:
                _open(server.url)
            server.serve_forever()
    except KeyboardInterrupt:
        show("")


def _write(folder: Path, html: Path, browser: bool) -> None:
    from steadyeye.cli.terminal import show
    from steadyeye.core.storage.files import write_output
    from steadyeye.report.render.run_list import render_list
    from steadyeye.report.run_index import RunIndex

    runs = RunIndex(folder).runs()
    base = Path(os.path.relpath(folder.resolve(), html.parent.resolve())).as_posix()
    write_output(html, render_list(runs, str(folder), base).encode())
    show(f"{number_of(len(runs), 'run')}: {html.resolve()}")
    if browser:
        _open(html.resolve().as_uri())


def _report(run: Path, browser: bool) -> None:
    from steadyeye.cli.terminal import show
    from steadyeye.core.errors import UsageError

    file = run / "report.html"
    if not file.is_file():
        if (run / "candidates.json").is_file():
            raise UsageError(f"'{run}' has no report yet; run `steadyeye mine` again")
        from steadyeye.report import build

        build.write([run], [file])
    show(f"report: {file.resolve()}")
    if browser:
        _open(file.resolve().as_uri())


def _open(address: str) -> None:
    """Opens an address in a browser if there is a screen; text browsers would take the terminal."""
    screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if screen:
        webbrowser.open(address)
