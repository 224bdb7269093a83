"""Events posted as JSON to the addresses that the user gives, and to no other."""

import json
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import Condition, Thread
from time import monotonic
from typing import Any
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.watch.frames import redact

TIMEOUT = 5.0
"""Seconds that an address has to take an event."""
WAITS = (1.0, 2.0, 4.0, 8.0)
"""Seconds before it is tried again; then the event is given up."""
MOST = 100
"""Events that wait; of more the oldest are given up."""


class _NoRedirects(HTTPRedirectHandler):
    """Treats redirects as errors, so that events go only to the addresses of the user."""

    def redirect_request(self, *arguments: Any) -> None:
        """Returns None, so that redirects are not followed."""


class Webhooks:
    """Posts events in a separate thread, so that a slow address delays no frame.

    `say`: prints a line; of each event that is given up, and of their number at the end.
    `failed`: that number. Raises `UsageError` for what is no http(s) address.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        say: Callable[[str], None],
        waits: Sequence[float] = WAITS,
    ) -> None:
        for address in addresses:
            parts = urlsplit(address)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise UsageError(
                    f"'{redact(address)}' is no address to post to; give one that begins with "
                    "http:// or https://"
                )
        self.addresses, self.say, self.waits = tuple(addresses), say, tuple(waits)
        self.sent = self.failed = 0
        self._opener = build_opener(_NoRedirects)
        self._events: deque[tuple[str, bytes]] = deque()
        self._change = Condition()
        self._busy = self._over = False
        self._thread: Thread | None = None

    def post(self, event: Mapping[str, Any]) -> None:
        """Sends an event to each address, soon."""
        if not self.addresses:
            return
        content = json.dumps(event, ensure_ascii=False).encode()
        with self._change:
            for address in self.addresses:
                if len(self._events) >= MOST:
                    self._events.popleft()
                    self.failed += 1
                self._events.append((address, content))
            self._change.notify_all()
        if self._thread is None:
            self._thread = Thread(target=self._run, name="webhooks", daemon=True)
            self._thread.start()

    def close(self, seconds: float) -> None:
        """Waits up to `seconds` for events that are not sent yet, and drops the rest."""
        until = monotonic() + seconds
        with self._change:
            while (self._events or self._busy) and monotonic() < until:
                self._change.wait(until - monotonic())
            self.failed += len(self._events)
            self._events.clear()
            self._over = True
            self._change.notify_all()
            self._change.wait_for(lambda: not self._busy, 1)
        if self.failed:
            self.say(f"{self.failed} of {number_of(self.failed + self.sent, 'post')} not delivered")

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._events or self._over)
                if self._over:
                    return
                address, content = self._events.popleft()
                self._busy = True
            is_sent = self._send(address, content)
            with self._change:
                self._busy = False
                self.sent += is_sent
                self.failed += not is_sent
                self._change.notify_all()

    def _send(self, address: str, content: bytes) -> bool:
        for tries, wait in enumerate((*self.waits, None), 1):
            try:
                with self._opener.open(_make_request(address, content), timeout=TIMEOUT):
                    return True
            except (OSError, ValueError) as error:
                reason = error.reason if type(error) is URLError else error
            if wait is None or self._wait(wait):
                times = "once" if tries == 1 else f"{tries} times"
                self.say(f"alert not delivered to {redact(address)}, tried {times}: {reason}")
                break
        return False

    def _wait(self, seconds: float) -> bool:
        """Waits before the next try; returns whether the watch ended meanwhile."""
        with self._change:
            return self._change.wait_for(lambda: self._over, seconds)


def _make_request(address: str, content: bytes) -> Request:
    """A post; name and password in the address are sent as a header, which `urllib` does not do."""
    parts = urlsplit(address)
    login, _, host = parts.netloc.rpartition("@")
    headers = {"Content-Type": "application/json"}
    if login:
        headers["Authorization"] = f"Basic {b64encode(unquote(login).encode()).decode()}"
    return Request(parts._replace(netloc=host).geturl(), content, headers)  # noqa: S310
