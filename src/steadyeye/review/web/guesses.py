"""Recent wrong links, to limit guessing."""

import ipaddress
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from fastapi import HTTPException

WINDOW = 60.0  # seconds
MOST_OF_ADDRESS = 10
MOST = 300  # of all addresses together


@dataclass(eq=False)
class Guesses:
    """The wrong links of the last minute, with the network that each came from; in memory.

    Its size is bounded by `MOST`, because no more tries are allowed. `clock`: monotonic seconds.
    """

    clock: Callable[[], float] = time.monotonic
    recent: deque[tuple[float, str]] = field(default_factory=deque)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, address: str) -> None:
        """Raises 429 if an address, or all together, had too many wrong links."""
        network = find_network(address)
        with self.lock:
            now = self.clock()
            while self.recent and self.recent[0][0] <= now - WINDOW:
                self.recent.popleft()
            own = [moment for moment, other in self.recent if other == network]
            if len(own) < MOST_OF_ADDRESS and len(self.recent) < MOST:
                return
            first = own[0] if len(own) >= MOST_OF_ADDRESS else self.recent[0][0]
            seconds = int(first + WINDOW - now) + 1
        raise HTTPException(
            429,
            f"too many links were wrong; try again in {seconds} s",
            headers={"Retry-After": str(seconds)},
        )

    def add(self, address: str) -> None:
        """Notes a wrong link."""
        with self.lock:
            self.recent.append((self.clock(), find_network(address)))


def find_network(address: str) -> str:
    """The network of an address: for IPv6 its /64, all of which one user has."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return address
    # a client that reaches an IPv6 socket by IPv4
    if ip.ipv4_mapped:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((int(ip), 64), strict=False).network_address)
