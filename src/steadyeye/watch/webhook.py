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
"""Events that wait for an address; of more the oldest are given up."""


class _NoRedirects(HTTPRedirectHandler):
    """Treats redirects as errors, so that events go only to the addresses of the user."""

    def redirect_request(self, *arguments: Any) -> None:
        """Returns None, so that redirects are not followed."""


class Webhooks:
    """Posts events to each address in a thread of its own, so that a slow one delays nothing else.

    `say`: prints a line; of each event that is given up, and of their number at the end. Raises
    `UsageError` for what is no http(s) address.
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
        self.say = say
        self._queues = [_Queue(address, say, tuple(waits)) for address in addresses]

    @property
    def deliveries(self) -> int:
        """The number of posts that an address took."""
        return sum(queue.sent for queue in self._queues)

    @property
    def failures(self) -> int:
        """The number of posts that were given up."""
        return sum(queue.failed for queue in self._queues)

    def post(self, event: Mapping[str, Any]) -> None:
        """Sends an event to each address, soon."""
        content = json.dumps(event, ensure_ascii=False).encode()
        for queue in self._queues:
            queue.add(content)

    def close(self, seconds: float) -> None:
        """Waits up to `seconds` for events that are not sent yet, and drops the rest."""
        until = monotonic() + seconds
        for queue in self._queues:
            queue.close(until)
        if failures := self.failures:
            total = number_of(failures + self.deliveries, "post")
            self.say(f"{failures} of {total} not delivered")


class _Queue:
    """The events that wait for an address, and the thread that posts them one after another."""

    def __init__(self, address: str, say: Callable[[str], None], waits: tuple[float, ...]) -> None:
        self.address, self.say, self.waits = address, say, waits
        self.sent = self.failed = 0
        self._opener = build_opener(_NoRedirects)
        self._events: deque[bytes] = deque()
        self._change = Condition()
        self._busy = self._over = False
        self._thread: Thread | None = None

    def add(self, content: bytes) -> None:
        with self._change:
            is_full = len(self._events) >= MOST
            if is_full:
                self._events.popleft()
                self.failed += 1
            self._events.append(content)
            self._change.notify_all()
        if is_full:
            self.say(f"alert not delivered to {redact(self.address)}: {MOST} newer ones wait")
        if self._thread is None:
            self._thread = Thread(target=self._run, name="webhook", daemon=True)
            self._thread.start()

    def close(self, until: float) -> None:
        """Waits until a time of the monotonic clock for the events, and drops the rest."""
        with self._change:
            while (self._events or self._busy) and monotonic() < until:
                self._change.wait(until - monotonic())
            self.failed += len(self._events)
            self._events.clear()
            self._over = True
            self._change.notify_all()
            self._change.wait_for(lambda: not self._busy, 1)

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._events or self._over)
                if self._over:
                    return
                content = self._events.popleft()
                self._busy = True
            is_sent = self._send(content)
            with self._change:
                self._busy = False
                self.sent += is_sent
                self.failed += not is_sent
                self._change.notify_all()

    def _send(self, content: bytes) -> bool:
        for tries, wait in enumerate((*self.waits, None), 1):
            try:
                request = _make_request(self.address, content)
                with self._opener.open(request, timeout=TIMEOUT):
                    return True
            except (OSError, ValueError) as error:
                reason = error.reason if type(error) is URLError else error
            if wait is None or self._wait(wait):
                times = "once" if tries == 1 else f"{tries} times"
                self.say(f"alert not delivered to {redact(self.address)}, tried {times}: {reason}")
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
