"""The server of a review: its addresses and its time limits."""

import asyncio
import errno
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import psutil
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from steadyeye.core.errors import UsageError, list_texts

ALL = ("0.0.0.0", "::", "")  # noqa: S104 - asked for by the user
LOCAL = ("127.0.0.1", "localhost", "::1")
HEAD_SECONDS = 15.0  # in which the head of a request must have come
IDLE_SECONDS = 5  # between two requests of a connection
MOST_CONNECTIONS = 800  # fifty browsers have six each; a process may have 1,024 files


@dataclass(frozen=True)
class Listener:
    """Sockets that listen. `hosts`: the names and addresses under which others reach them."""

    sockets: Sequence[socket.socket]
    hosts: Sequence[str]

    @property
    def port(self) -> int:
        """The port of all of them."""
        return int(self.sockets[0].getsockname()[1])

    @property
    def urls(self) -> list[str]:
        """The URLs for browsers; the first is the likeliest."""
        return [f"http://{bracket(host)}:{self.port}" for host in self.hosts]

    @property
    def trusted_hosts(self) -> list[str]:
        """The host names that a request may use."""
        return [bracket(host) for host in (*LOCAL, *self.hosts, socket.gethostname())]

    @property
    def public(self) -> bool:
        """Whether other machines reach it."""
        return not all(host in LOCAL or is_loopback(host) for host in self.hosts)


def listen(host: str, port: int) -> Listener:
    """Sockets that listen on a host's addresses; `port` 0: on a port that is free.

    Raises `UsageError` for a port that is taken or not ours, and a host that is not this machine.
    """
    sockets: list[socket.socket] = []
    failure: OSError | None = None
    for family, address in _find_addresses(host, port):
        place = (address, sockets[0].getsockname()[1] if sockets else port)
        try:
            # "::" alone takes IPv4 too
            both = address == "::" and socket.has_dualstack_ipv6()
            sockets.append(socket.create_server(place, family=family, dualstack_ipv6=both))
        except OSError as error:
            # a name may have an address of a kind that this machine lacks
            if error.errno == errno.EADDRINUSE:
                raise _explain(error, host, port) from error
            failure = error
    if not sockets:
        assert failure is not None, "a host has an address"
        raise _explain(failure, host, port) from failure
    hosts = list_own_addresses(host) if host in ALL else [host]
    return Listener(sockets, hosts)


def _find_addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    if host in ALL:
        return [(socket.AF_INET6 if host == "::" else socket.AF_INET, host)]
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UsageError(f"--host '{host}' has no address; give one of this machine's") from None
    return list(dict.fromkeys((row[0], str(row[4][0])) for row in rows))


def _explain(error: OSError, host: str, port: int) -> UsageError:
    cures = {
        errno.EADDRINUSE: f"port {port} is taken, perhaps by a review that runs already; "
        "stop that, or choose another --port (0: one that is free)",
        errno.EACCES: f"port {port} is for the system; choose a --port above 1023",
        errno.EADDRNOTAVAIL: f"--host '{host}' is no address of this machine; it has "
        f"{list_texts(list_own_addresses())}",
    }
    cure = cures.get(error.errno or 0, f"{error.strerror}; choose another --host or --port")
    return UsageError(f"cannot listen at {bracket(host)}:{port}: {cure}")


def list_own_addresses(host: str = "::") -> list[str]:
    """The addresses at which other machines reach this one, IPv4 first; else the loopback.

    `host`: of "0.0.0.0" those of IPv4 only.
    """
    kinds = [socket.AF_INET] if host != "::" else [socket.AF_INET, socket.AF_INET6]
    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    rows = [
        (kinds.index(row.family), row.address)
        for name, own in psutil.net_if_addrs().items()
        for row in own
        if name in up and row.family in kinds
    ]
    addresses = [
        address
        for _, address in sorted(rows, key=lambda row: row[0])
        # one of a link alone works with the name of the reader's own interface only
        if not is_loopback(address) and not ip_address(address).is_link_local
    ]
    return addresses or ["127.0.0.1"]


def is_loopback(host: str) -> bool:
    """Whether a host is an address that only this machine reaches."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def bracket(host: str) -> str:
    """A host as URLs have it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def read_public_url(url: str) -> str:
    """The public address of a review, without a slash at its end.

    Raises `UsageError` for anything but http:// or https:// and a host.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--url '{url}' is no address; write it as https://review.example.org")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise UsageError(f"--url '{url}' has a path; a review needs a host name of its own")
    return f"{parts.scheme}://{parts.netloc}"


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's HTTP protocol, which closes connections whose next request head is too slow.

    uvicorn itself waits for ever for the first line of a connection, and for the rest of a head
    that comes a letter at a time.
    """

    patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Starts the time limit for the head of the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Keeps the time limit while a head is incomplete; new bytes do not extend it."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before or not self._is_idle():
            self._stop_waiting()
        elif self.patience is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancels the time limit."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self.patience = loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self.patience is not None:
            self.patience.cancel()
            self.patience = None


def configure(app: FastAPI, *, proxy: bool) -> uvicorn.Config:
    """The configuration of uvicorn.

    `proxy`: whether to trust its header for the client's address.
    """
    return uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=proxy,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
    )


def serve(app: FastAPI, listener: Listener, *, proxy: bool) -> None:
    """Serves the app until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        uvicorn.Server(configure(app, proxy=proxy)).run(sockets=list(listener.sockets))
