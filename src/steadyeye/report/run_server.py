"""A server of this machine for the runs below a folder: the list, reports and comparisons.

Nothing is written below the folder: reports made on demand are in a temporary folder of the server.
Only paths of the list are served, and only requests with a name of this machine are answered.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import Place, temporary_folder
from steadyeye.report.render.run_list import (
    MINING,
    TRAINING,
    ListedRun,
    describe_list,
    render_list,
    render_problem,
)
from steadyeye.report.run_index import RunIndex

ADDRESS = "127.0.0.1"
PORT = 8420
NAMES = (ADDRESS, "localhost")
"""Host names that a request may use, against DNS rebinding."""

POLICY = (
    "default-src 'none'; img-src data: blob:; media-src data: blob:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline' 'unsafe-eval'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""A page may run its own scripts but make no requests, so that no report reads another."""

SECURITY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class RunServer(ThreadingHTTPServer):
    """Serves the runs below a folder at a port of this machine; 0: a free port."""

    daemon_threads = True

    def __init__(self, root: Place, port: int, folder: Path) -> None:
        self.index = RunIndex(root)
        self._folder = folder
        # numba's and our own caches are filled by one thread at a time
        self._working = threading.Lock()
        self._listing = threading.Lock()
        super().__init__((ADDRESS, port), _Handler)

    @property
    def url(self) -> str:
        """The address of the list."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def runs(self) -> tuple[ListedRun, ...]:
        """The runs as they are now."""
        with self._listing:
            return self.index.runs()

    def report(self, path: str) -> bytes:
        """The report of a run: the existing one, or one made now.

        Raises `UsageError` if there is no such run, or its report cannot be made.
        """
        run = self._find_run(path)
        folder = self.index.root / path
        if run.report:
            return _inside(self.index.root, folder / "report.html").read_bytes()
        if run.kind in (TRAINING, MINING):
            raise UsageError(
                f"'{path}' has no report yet; the {run.kind} writes it when it is done"
            )
        return self._make([path], self._write_report)

    def compare(self, paths: Sequence[str]) -> bytes:
        """The comparison of runs; raises `UsageError` where they cannot be compared."""
        if len(set(paths)) < 2:
            raise UsageError("select two or more runs to compare them")
        for path in paths:
            self._find_run(path)
        return self._make(list(dict.fromkeys(paths)), self._write_comparison)

    def _find_run(self, path: str) -> ListedRun:
        for run in self.runs():
            if run.path == path:
                return run
        raise UsageError(f"there is no run '{path}' below '{self.index.root}'")

    def _make(self, paths: list[str], write: Callable[[list[Place], Path], None]) -> bytes:
        """The output of `write` for runs, reused while their records are unchanged."""
        stamps = [self.index.stamp(path) for path in paths]
        name = hashlib.sha256(repr((write.__name__, paths, stamps)).encode()).hexdigest()
        file = self._folder / f"{name}.html"
        with self._working:
            if not file.is_file():
                write([self.index.root / path for path in paths], file)
        return file.read_bytes()

    @staticmethod
    def _write_report(folders: list[Place], file: Path) -> None:
        from steadyeye.report import build  # a second of imports that the list needs not

        build.write(folders, [file])

    @staticmethod
    def _write_comparison(folders: list[Place], file: Path) -> None:
        from steadyeye.report.compare import write

        write(folders, [file])


@contextmanager
def serving(root: Place, port: int | None) -> Iterator[RunServer]:
    """A server of the runs below `root`, closed at the end of the block.

    `port`: None means `PORT`, or a free port if that is taken. Raises `UsageError` if a requested
    port is taken.
    """
    with temporary_folder() as folder:
        server = _bind_server(root, port, folder)
        try:
            yield server
        finally:
            server.server_close()


def _bind_server(root: Place, port: int | None, folder: Path) -> RunServer:
    try:
        return RunServer(root, PORT if port is None else port, folder)
    except OSError as error:
        if port is None:
            return RunServer(root, 0, folder)
        raise UsageError(
            f"cannot listen at port {port}: {error.strerror}; choose another --port"
        ) from error


def _inside(root: Place, path: Place) -> Place:
    """The path, which must not leave `root` through a link; a store has no links."""
    if isinstance(path, Path) and not path.resolve().is_relative_to(str(root)):
        raise UsageError(
            f"'{path.name}' of this run is a link to a file outside the folder; it is not shown"
        )
    return path


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD, under the names of this machine alone."""

    server: RunServer
    server_version = "steadyeye"
    sys_version = ""

    def do_GET(self) -> None:
        """Answers with a page, or with a line on why there is none."""
        hosts = [f"{name}:{self.server.server_port}" for name in NAMES]
        if self.headers.get("Host") not in hosts:
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"open it by the address it printed\n")
            return
        url = urlsplit(self.path)
        chosen, root = parse_qs(url.query).get("run", []), str(self.server.index.root)
        pages: dict[str, Callable[[], tuple[str, bytes]]] = {
            "/": lambda: ("text/html", render_list(self.server.runs(), root).encode()),
            "/index.json": lambda: (
                "application/json",
                json.dumps(describe_list(self.server.runs(), root)).encode(),
            ),
            "/report": lambda: ("text/html", self.server.report(chosen[0] if chosen else "")),
            "/compare": lambda: ("text/html", self.server.compare(chosen)),
        }
        if url.path == "/favicon.ico":
            self._send(HTTPStatus.NO_CONTENT, "image/x-icon", b"")
            return
        if url.path not in pages:
            self._refuse(HTTPStatus.NOT_FOUND, "There is no such page", "Only runs are served.")
            return
        # a page of the network may not make this machine compute
        if url.path != "/" and self.headers.get("Sec-Fetch-Site") == "cross-site":
            self._refuse(HTTPStatus.FORBIDDEN, "Not from another site", "Open it from the list.")
            return
        try:
            kind, content = pages[url.path]()
        except UsageError as error:
            self._refuse(HTTPStatus.CONFLICT, "This cannot be shown", str(error))
        except Exception as error:
            # one damaged run is no reason for the others not to be seen
            line = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "This cannot be shown", line)
        else:
            self._send(HTTPStatus.OK, kind, content)

    do_HEAD = do_GET  # noqa: N815 - the name the library calls

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing: the terminal shows only the address."""

    def _refuse(self, status: HTTPStatus, title: str, line: str) -> None:
        self._send(status, "text/html", render_problem(title, line).encode())

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        for name, value in SECURITY.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        with suppress(ConnectionError):  # the reader went on to another page
            self.wfile.write(content)
