"""Simulated reviewers on a real server while faults occur beneath it.

    python benchmarks/review_faults.py [--seconds 15] [--lock 60] [--reviewers 12] [--only locked]

Every reviewer answers pairs, one request per decision, and repeats an unacknowledged one with the
same key, as the pages do. Acknowledged decisions are written to a separate log, outside the server;
afterwards the database is compared with it. Meanwhile a reader requests the pages. The faults: the
database locked, the server killed (SIGKILL), the file deleted, the file replaced and restored, the
disk full (a small tmpfs: needs root), connections ended by PostgreSQL, connections cut by a proxy
before, in and after a commit, and the server's clock an hour back. Exits with 1, and the reasons,
if a decision was lost or doubled, or the review did not recover.
"""

import argparse
import asyncio
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx
import psycopg
import review_load
from review_load import ANSWER, STAGE
from sqlalchemy import func, select

from steadyeye.data.annotations.review_set import read
from steadyeye.review import database
from steadyeye.review.database import decisions
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.reviewers import Lifetime
from steadyeye.review.protocol.stages import read_plan
from steadyeye.review.web.access import COOKIE, make_csrf_word
from steadyeye.review.workflow import queue

GRACE = 30.0  # seconds after a fault in which all remaining decisions must be acknowledged
PAUSE = 0.2  # before a repetition
PAGES = ("/", f"/stages/{STAGE}", "/dashboard")
BALLAST = "ballast"


@dataclass
class Trial:
    """A server under a fault, and the observations of its reviewers.

    `log`: acknowledged keys and ids. `statuses`: of their requests; 0: no answer. `pages`: of those
    of the reader. `quiet`: the longest time without an acknowledged decision, seconds. `grace`: how
    long remaining decisions are repeated after the end. `given_up`: how many of them in vain.
    """

    root: Path
    url: str
    server: review_load.Server
    log: Path
    reviewers: int
    acknowledged: dict[str, int] = field(default_factory=dict)
    statuses: Counter = field(default_factory=Counter)
    pages: Counter = field(default_factory=Counter)
    quiet: float = 0.0
    last: float = 0.0
    grace: float = GRACE
    given_up: int = 0
    over: bool = False

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return Path(self.url.removeprefix("sqlite:///"))

    def acknowledge(self, key: str, decision: int) -> None:
        """Notes a decision that the server called stored, on disk before anything else happens."""
        now = time.monotonic()
        self.quiet, self.last = max(self.quiet, now - self.last), now
        self.acknowledged[key] = decision
        with self.log.open("a") as file:
            file.write(f"{key}\t{decision}\n")
            file.flush()
            os.fsync(file.fileno())


async def review(trial: Trial, client: httpx.AsyncClient, number: int, session: str) -> None:
    """One reviewer: answers what is next until the trial is over, and all is acknowledged."""
    chance = random.Random(number)
    headers = {"x-csrf-token": make_csrf_word(session), "cookie": f"{COOKIE}={session}"}
    content = await insist(trial, client, "GET", f"/stages/{STAGE}.json", headers)
    while content and content["next"] and not trial.over:
        await asyncio.sleep(chance.uniform(0, 0.1))
        served, key = content["next"][0], f"{number}-{chance.getrandbits(80):020x}"
        body = {"assignment": served["assignment"], "nonce": served["nonce"], "key": key}
        body |= {"answer": ANSWER, "seconds": 1.0}
        content = await insist(trial, client, "POST", "/decisions", headers, body)
        if content:
            trial.acknowledge(key, content["decision"])


async def insist(trial, client, method, path, headers, body=None):
    """The answer, asked for again with the same key; None where there is none after the grace."""
    end = None
    while True:
        status = 0
        with suppress(httpx.TransportError):
            answer = await client.request(method, path, headers=headers, json=body)
            status = answer.status_code
        trial.statuses[status] += 1
        if status == 200:
            return answer.json()
        if status not in (0, 503):
            raise SystemExit(f"{path}: {status} {answer.text}")
        end = end or (time.monotonic() + trial.grace if trial.over else None)
        if end and time.monotonic() > end:
            trial.given_up += method == "POST"
            return None
        await asyncio.sleep(PAUSE)


async def look(trial: Trial, client: httpx.AsyncClient, session: str) -> None:
    """A reader, who asks for every page twice a second."""
    headers = {"cookie": f"{COOKIE}={session}", "accept": "text/html"}
    while not trial.over:
        for page in PAGES:
            status = 0
            with suppress(httpx.TransportError):
                status = (await client.get(page, headers=headers)).status_code
            trial.pages[status] += 1
        await asyncio.sleep(0.5)


# ---- faults; each ends with the database as it was, but for the one that deletes it


async def lock(trial: Trial, seconds: float) -> None:
    """Another program holds the database."""
    if trial.url.startswith("sqlite"):
        with closing(sqlite3.connect(trial.path, isolation_level=None, timeout=30)) as other:
            other.execute("begin immediate")
            await asyncio.sleep(seconds)
            other.execute("rollback")
        return
    with psycopg.connect(trial.url) as other:
        other.execute("lock table decisions in access exclusive mode")
        await asyncio.sleep(seconds)
        other.rollback()


async def kill(trial: Trial, seconds: float) -> None:
    """The server is killed three times."""
    for _ in range(3):
        await asyncio.sleep(seconds / 3)
        trial.server.kill()
        await asyncio.to_thread(trial.server.start)


async def delete(trial: Trial, seconds: float) -> None:
    """The file and its log are deleted; a second name of them stays for the comparison."""
    folder = trial.root / "kept"
    folder.mkdir()
    files = sorted(trial.path.parent.glob(f"{trial.path.name}*"))
    for file in files:
        os.link(file, folder / file.name)
    for file in files:
        file.unlink()
    await stay_silent(trial, seconds)
    trial.url, trial.grace = f"sqlite:///{folder / trial.path.name}", 0.0


async def replace(trial: Trial, seconds: float) -> None:
    """Another review stands in the place of the file and its log, until they are put back."""
    other, away = trial.root / "other.sqlite", trial.root / "away"
    database.connect(f"sqlite:///{other}").engine.dispose()
    away.mkdir()
    for file in sorted(trial.path.parent.glob(f"{trial.path.name}*")):
        file.rename(away / file.name)
    other.rename(trial.path)
    await stay_silent(trial, seconds)
    with closing(sqlite3.connect(trial.path)) as db:
        strays = db.execute("select count(*) from decisions").fetchone()[0]
    if strays:
        raise SystemExit(f"{strays} decisions went into the other file")
    for file in away.iterdir():
        file.replace(trial.path.with_name(file.name))


async def stay_silent(trial: Trial, seconds: float) -> None:
    """Waits, and raises where anything is acknowledged meanwhile."""
    await asyncio.sleep(1)  # requests that were already past their commit
    before = len(trial.acknowledged)
    await asyncio.sleep(seconds)
    if len(trial.acknowledged) != before:
        raise SystemExit("decisions were acknowledged into nowhere")


async def fill(trial: Trial, seconds: float) -> None:
    """No byte is left on the disk of the database."""
    disk = trial.root / "disk"
    with suppress(OSError), (disk / BALLAST).open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)
    await asyncio.sleep(seconds)
    (disk / BALLAST).unlink()


async def end_connections(trial: Trial, seconds: float) -> None:
    """PostgreSQL ends all connections, three times a second."""
    query = "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
    end = time.monotonic() + seconds
    with psycopg.connect(trial.url, autocommit=True) as admin:
        while time.monotonic() < end:
            admin.execute(f"{query} and backend_type = 'client backend'")
            await asyncio.sleep(0.3)


async def cut(trial: Trial, seconds: float) -> None:
    """The proxy cuts connections before a commit, right after it, and before its answer."""
    CUTS.active = True
    await asyncio.sleep(seconds)
    CUTS.active = False


async def turn_clock_back(trial: Trial, seconds: float) -> None:
    """The server's clock goes back an hour, and forward again."""
    (trial.root / "back").touch()
    await asyncio.sleep(seconds)
    (trial.root / "back").unlink()


# ---- what some faults need


@dataclass
class Cuts:
    """Which commits a proxy cuts, while it is `active`: one in three, each at another moment."""

    active: bool = False
    commits: int = 0
    done: Counter = field(default_factory=Counter)


CUTS = Cuts()


async def serve_proxy(reader, writer, socket: str) -> None:
    """A connection to PostgreSQL's Unix socket, cut now and then."""
    back, forth = await asyncio.open_unix_connection(socket)
    mute = asyncio.Event()

    async def answer() -> None:
        while data := await back.read(1 << 16):
            if not mute.is_set():
                writer.write(data)
                await writer.drain()

    async def ask() -> None:
        while data := await reader.read(1 << 16):
            moment = choose_moment(data)
            if moment == "before":
                return
            if moment == "answer lost":
                mute.set()
            forth.write(data)
            await forth.drain()
            if moment:
                await asyncio.sleep(0.05 if moment == "answer lost" else 0)
                return

    tasks = [asyncio.create_task(answer()), asyncio.create_task(ask())]
    with suppress(ConnectionError):
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for stream in (writer, forth):
        stream.transport.abort()
    await asyncio.gather(*tasks, return_exceptions=True)


def choose_moment(data: bytes) -> str:
    """When to cut the connection that sends this; empty: not now."""
    if not CUTS.active or b"COMMIT" not in data:
        return ""
    CUTS.commits += 1
    if CUTS.commits % 3:
        return ""
    moment = ("before", "with it", "answer lost")[CUTS.commits // 3 % 3]
    CUTS.done[moment] += 1
    return moment


class ClockServer(review_load.Server):
    """The command under a clock that is an hour back while the file `back` is there."""

    def begin(self) -> subprocess.Popen:
        """The command in a process that has only begun."""
        flag = Path(self.words[1]) / "back"
        code = (
            "import os, runpy, sys, time; now = time.time; "
            f"time.time = lambda: now() - 3600 * os.path.exists({str(flag)!r}); "
            f"sys.argv = ['steadyeye', *{self.words!r}]; "
            "runpy.run_module('steadyeye', run_name='__main__')"
        )
        return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)


@contextmanager
def small_disk(folder: Path, megabytes: int):
    """A file system in memory of so many megabytes."""
    folder.mkdir()
    size = f"size={megabytes}m,mode=777"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


Fault = Callable[[Trial, float], Awaitable[None]]
FAULTS: dict[str, tuple[Fault, tuple[str, ...]]] = {
    "locked": (lock, ("sqlite", "postgresql")),
    "server killed": (kill, ("sqlite", "postgresql")),
    "file deleted": (delete, ("sqlite",)),
    "file replaced": (replace, ("sqlite",)),
    "disk full": (fill, ("sqlite", "postgresql")),
    "connections ended": (end_connections, ("postgresql",)),
    "connections cut": (cut, ("postgresql",)),
    "clock an hour back": (turn_clock_back, ("sqlite", "postgresql")),
}


def prepare(trial_root: Path, url: str, people: int) -> list[str]:
    """Sessions of the admin and of so many reviewers, in a new database."""
    data, folder = database.connect(url), read(trial_root)
    with data.writing() as connection:
        reviewers.add_reviewer(connection, "admin", admin=True)
        for number in range(people):
            reviewers.add_reviewer(connection, f"reviewer {number}")
        everyone = reviewers.list_reviewers(connection)
        words = [reviewers.open_session(connection, reviewer, Lifetime()) for reviewer in everyone]
        queue.add_set_items(connection, folder, read_plan(folder.content))
    data.engine.dispose()
    return words


async def run(trial: Trial, words: list[str], fault: Fault, seconds: float) -> None:
    """All reviewers at once, the fault in their midst, and some time after it."""
    limits = httpx.Limits(max_connections=2 * trial.reviewers)
    address = trial.server.address
    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=20) as client:
        trial.last = time.monotonic()
        work = [review(trial, client, n, word) for n, word in enumerate(words[1:])]
        everyone = asyncio.gather(*work, look(trial, client, words[0]))
        try:
            while len(trial.acknowledged) < 3 * trial.reviewers:
                await asyncio.sleep(0.1)
            await fault(trial, seconds)
            await asyncio.sleep(0 if fault is delete else min(4, seconds))
        finally:
            trial.over = True
            await everyone


def compare(trial: Trial) -> dict[str, object]:
    """What is stored of what was acknowledged, and what more is stored."""
    data = database.connect(trial.url)
    with data.reading() as connection:
        stored = dict(connection.execute(select(decisions.c.key, decisions.c.id)).all())
        many = select(decisions.c.item).group_by(decisions.c.item).having(func.count() > 1)
        doubled = len(connection.execute(many).all())
    data.engine.dispose()
    log = [line.split("\t") for line in trial.log.read_text().splitlines()]
    return {
        "acknowledged": len(log),
        "stored": sum(stored.get(key) == int(decision) for key, decision in log),
        "doubled": doubled,
        "given up": trial.given_up,
        "not acknowledged, stored": len(stored.keys() - trial.acknowledged.keys()),
        "refused (503)": trial.statuses[503],
        "no answer": trial.statuses[0],
        "longest pause": f"{trial.quiet:.1f} s",
        "pages": dict(sorted(trial.pages.items())),
    }


def list_losses(row: Mapping[str, Any], reviewers: int) -> list[str]:
    """What is wrong with the figures of a fault, in words; empty if the review recovered.

    After a deleted file each reviewer has one decision that may be stored without an answer.
    """
    deleted = row["fault"] == "file deleted"
    checks = {
        "nothing was acknowledged": row["acknowledged"] == 0,
        "acknowledged decisions are not stored": row["stored"] != row["acknowledged"],
        "items have two decisions of one answer": row["doubled"] > 0,
        "decisions were not taken after the fault": row["given up"] > 0 and not deleted,
        "decisions are stored that were never acknowledged": row["not acknowledged, stored"]
        > (reviewers if deleted else 0),
        "pages had other answers than 200 and 503": bool(set(row["pages"]) - {0, 200, 503}),
    }
    where = f"{row['fault']}, {row['database']}"
    return [f"{where}: {reason}: {dict(row)}" for reason, is_true in checks.items() if is_true]


@contextmanager
def begin(kind: str, name: str, root: Path):
    """The URL of a new database of a kind."""
    small = small_disk(root / "disk", 16 if kind == "sqlite" else 200)
    with small if name == "disk full" else nullcontext(root) as place:
        if kind == "sqlite":
            yield f"sqlite:///{place / 'review.sqlite'}"
            return
        import pgserver

        postgres = pgserver.get_server(place / "postgres")
        try:
            yield postgres.get_uri()
        finally:
            postgres.cleanup()


async def try_fault(
    name: str, kind: str, seconds: float, people: int, server: type = review_load.Server
) -> dict[str, object]:
    """The figures of one fault on one kind of database; `server`: how it is begun."""
    fault, _ = FAULTS[name]
    CUTS.done.clear()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        # more than all can answer: nobody answers 25 a second
        review_load.make_set(root, min(4_000, round(25 * people * (seconds + 6))))
        with begin(kind, name, root) as url:
            words = await asyncio.to_thread(prepare, root, url, people)
            proxy, reached = await open_proxy(url) if fault is cut else (None, url)
            start_server = ClockServer if fault is turn_clock_back else server
            begun = await asyncio.to_thread(start_server, root, reached)
            trial = Trial(root, url, begun, root / "log.tsv", people)
            try:
                await run(trial, words, fault, seconds)
            finally:
                trial.server.kill()
                if proxy:
                    proxy.close()
            return {"fault": name, "database": kind, **await asyncio.to_thread(compare, trial)}


async def open_proxy(url: str):
    """A proxy before PostgreSQL, and the URL through it."""
    facts = psycopg.conninfo.conninfo_to_dict(url)
    socket = f"{facts['host']}/.s.PGSQL.{facts.get('port', 5432)}"
    proxy = await asyncio.start_server(
        lambda reader, writer: serve_proxy(reader, writer, socket), "127.0.0.1", 0
    )
    port = proxy.sockets[0].getsockname()[1]
    return proxy, f"postgresql://{facts['user']}@127.0.0.1:{port}/{facts['dbname']}"


def main() -> None:
    """Prints a table in Markdown; exits with 1 if a row shows a loss."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--lock", type=float, default=60)
    parser.add_argument("--reviewers", type=int, default=12)
    parser.add_argument("--only", choices=FAULTS)
    parser.add_argument("--kind", choices=("sqlite", "postgresql"))
    arguments = parser.parse_args()
    rows, losses = 0, []
    for name, (_, kinds) in FAULTS.items():
        for kind in kinds:
            if arguments.only in (None, name) and arguments.kind in (None, kind):
                seconds = arguments.lock if name == "locked" else arguments.seconds
                row = asyncio.run(try_fault(name, kind, seconds, arguments.reviewers))
                if not rows:
                    print("| " + " | ".join(row) + " |\n" + "|---" * len(row) + "|")
                rows += 1
                losses += list_losses(row, arguments.reviewers)
                print("| " + " | ".join(map(str, row.values())) + " |", flush=True)
                if CUTS.done:
                    print(json.dumps(CUTS.done), file=sys.stderr)
    if losses:
        raise SystemExit("\n".join(losses))


if __name__ == "__main__":
    main()
