"""The page of a watch, the JSON behind it, and its OpenMetrics endpoint."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Thread
from urllib.parse import urlsplit

from steadyeye.core.errors import UsageError
from steadyeye.core.open_metrics import CONTENT_TYPE
from steadyeye.report.run_server import ADDRESS, NAMES
from steadyeye.watch.session import Watch
from steadyeye.watch.watch_metrics import write_metrics

PORT = 8421
Content = tuple[str, bytes]
"""A media type and what is sent."""

SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
STATIC = {
    "/": ("watch.html", "text/html; charset=utf-8"),
    "/watch.css": ("watch.css", "text/css; charset=utf-8"),
    "/watch.js": ("watch.js", "text/javascript; charset=utf-8"),
}


class WatchServer(ThreadingHTTPServer):
    """Serves `answer(path)`; None means that there is no such page.

    `names`: host names that a request may use, against DNS rebinding; empty if other machines may
    use any name.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], answer: Callable[[str], Content | None]) -> None:
        self.answer = answer
        self.names = NAMES if address[0] in NAMES else ()
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    server: WatchServer
    server_version = "steadyeye"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Answers with a page, or with a line on why there is none."""
        # without a port where that is the one of HTTP
        host = (self.headers.get("Host") or "").partition(":")[0]
        if self.server.names and host not in self.server.names:
            self._send(HTTPStatus.FORBIDDEN, ("text/plain", b"open it by the address it printed\n"))
            return
        try:
            content = self.server.answer(urlsplit(self.path).path)
        except Exception as error:
            line = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}\n"
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, ("text/plain", line.encode()))
            return
        missing = ("text/plain", b"there is no such page\n")
        self._send(HTTPStatus.OK if content else HTTPStatus.NOT_FOUND, content or missing)

    do_HEAD = do_GET  # noqa: N815 - the name the library calls

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing: the terminal shows only events of the stream."""

    def _send(self, status: HTTPStatus, content: Content) -> None:
        with suppress(ConnectionError, TimeoutError):  # the reader went
            self.send_response(status)
            self.send_header("Content-Type", content[0])
            self.send_header("Content-Length", str(len(content[1])))
            for name, value in SECURITY.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content[1])


def answer_page(watch: Watch, path: str) -> Content | None:
    """The page at a path: the watch page, `/state.json`, a stored frame or its JSON file."""
    if path in STATIC:
        name, kind = STATIC[path]
        return kind, files("steadyeye.watch").joinpath("static", name).read_bytes()
    if path == "/state.json":
        state = dict(watch.latest)
        names = state["frames"]["names"]
        about = [{"name": name, **watch.ring.describe(name)} for name in names]
        state["frames"] = {**state["frames"], "newest": about}
        return "application/json", json.dumps(state, ensure_ascii=False).encode()
    if path.startswith("/frames/"):
        picture = watch.ring.read(path.removeprefix("/frames/"))
        return ("image/jpeg", picture) if picture else None
    return None


def answer_metrics(watch: Watch, path: str) -> Content | None:
    """The metrics at `/metrics`."""
    if path != "/metrics":
        return None
    return CONTENT_TYPE, write_metrics(watch.latest, watch.start).encode()


@contextmanager
def serving(
    answer: Callable[[str], Content | None], host: str, port: int | None
) -> Iterator[WatchServer]:
    """A server in a separate thread, closed at the end of the block.

    `port`: None means `PORT`, or a free port if that is taken. Raises `UsageError` if a requested
    port is taken or the host is not this machine's.
    """
    server = _bind_server(answer, host, port)
    thread = Thread(target=server.serve_forever, args=(0.2,), name="server", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _bind_server(
    answer: Callable[[str], Content | None], host: str, port: int | None
) -> WatchServer:
    try:
        return WatchServer((host, PORT if port is None else port), answer)
    except OSError as error:
        if port is None:
            return WatchServer((host, 0), answer)
        raise UsageError(
            f"cannot listen at {host}:{port}: {error.strerror}; choose another port or host"
        ) from error


def address_of(server: WatchServer) -> str:
    """Its address for a browser."""
    return f"http://{server.server_address[0]!s}:{server.server_port}/"


__all__ = ["ADDRESS", "WatchServer", "address_of", "answer_metrics", "answer_page", "serving"]
