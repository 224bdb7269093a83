"""Simulated reviewers on loopback against a real server that is killed twice.

    python benchmarks/review_load.py [--decisions 20000] [--reviewers 50] [--think 0.4]

For SQLite and for PostgreSQL (a separate server, from the package `pgserver`): every reviewer
answers pairs over HTTP, one request per decision, with pauses in between. Twice the server is
killed with SIGKILL and restarted; unacknowledged decisions are repeated with the same key.
Afterwards the database is compared with the acknowledged decisions.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx2 as httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import simplejpeg
from sqlalchemy import func, select

from steadyeye.data.annotations.review_set import FRAMES, image_name, image_path, read
from steadyeye.review import database
from steadyeye.review.database import assignments, decisions
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.reviewers import Lifetime
from steadyeye.review.protocol.stages import read_plan
from steadyeye.review.web.access import COOKIE, make_csrf_word
from steadyeye.review.workflow import queue

STAGE = "pairs"
ANSWER = {"correct": "yes", "similar": "yes", "reasons": []}
KILLS = (1 / 3, 2 / 3)  # of the decisions


@dataclass
class Load:
    """What the reviewers saw: acknowledged keys, seconds of each answer, requests sent again."""

    acknowledged: list[tuple[str, int]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    repeated: int = 0


def make_set(root: Path, pairs: int) -> None:
    """A set of `pairs` pairs, twenty an anchor, over fifty small pictures."""
    names = []
    for number in range(50):
        grey = np.full((48, 64, 3), 5 * number, np.uint8)
        content = simplejpeg.encode_jpeg(grey, 90, "RGB")
        path = image_path(root, image_name(content))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        names.append(path.name)
    rows = []
    for anchor in range(-(-pairs // 20)):
        for offset in range(-10, 11):
            row = dict.fromkeys(FRAMES.names)
            rows.append(
                row
                | {
                    "id": f"v{anchor}/{offset}",
                    "group": f"v{anchor}",
                    "video": f"v{anchor}",
                    "frame": 10 + offset,
                    "offset": offset,
                    "labels": [0],
                    "image": names[(anchor + offset) % 50],
                    "accepted": True,
                }
            )
    pq.write_table(pa.Table.from_pylist(rows, schema=FRAMES), root / "frames.parquet")
    content = {
        "version": 1,
        "name": "load",
        "kind": "frames",
        "classes": {"names": ["cat"], "wnids": None},
        "review": {"stages": {STAGE: 1}, "gold": {"every": 1_000_000}},
    }
    (root / "set.json").write_text(json.dumps(content))


class Server:
    """The real command in a process of its own, killed and started again on the same port."""

    def __init__(self, root: Path, url: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.words = ["review", str(root), "--port", str(self.port), "--database", url]
        self.start()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def begin(self) -> subprocess.Popen:
        """The command in a process that has only begun."""
        command = [sys.executable, "-m", "steadyeye", *self.words]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def start(self) -> None:
        """Starts it and waits until it answers."""
        self.process = self.begin()
        for _ in range(600):
            with socket.socket() as connection:
                if connection.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise SystemExit("the server does not answer")

    def kill(self) -> None:
        """Kills it as a crash would."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


async def reviewer(client: httpx.AsyncClient, number: int, session: str, load: Load, job: "Job"):
    """One reviewer: takes what is next, thinks, answers, until nothing is left or enough done."""
    random_ = random.Random(number)
    headers = {"x-csrf-token": make_csrf_word(session), "cookie": f"{COOKIE}={session}"}
    content = await _sure(client, "GET", f"/stages/{STAGE}.json", headers, load)
    while content["next"] and len(load.acknowledged) < job.decisions:
        served = content["next"][0]
        await asyncio.sleep(random_.uniform(0, 2 * job.think))
        key = f"{number}-{random_.getrandbits(80):020x}"
        body = {"assignment": served["assignment"], "nonce": served["nonce"], "key": key}
        body |= {"answer": ANSWER, "seconds": 1.0}
        content = await _sure(client, "POST", "/decisions", headers, load, body)
        load.acknowledged.append((key, content["decision"]))


async def _sure(client, method, path, headers, load, body=None):
    """The answer to a request, sent again with the same key until there is one."""
    while True:
        began = time.perf_counter()
        try:
            answer = await client.request(method, path, headers=headers, json=body)
        except httpx.TransportError:
            load.repeated += 1
            await asyncio.sleep(0.2)
            continue
        if answer.status_code >= 400:
            raise SystemExit(f"{path}: {answer.status_code} {answer.text}")
        if method == "POST":
            load.seconds.append(time.perf_counter() - began)
        return answer.json()


@dataclass(frozen=True)
class Job:
    """How many decisions by how many reviewers, and how long each thinks, seconds on average."""

    decisions: int
    reviewers: int
    think: float


async def run(server: Server, words: list[str], load: Load, job: Job) -> None:
    """All reviewers at once, and two kills."""
    limits = httpx.Limits(max_connections=job.reviewers)
    async with httpx.AsyncClient(base_url=server.address, limits=limits, timeout=60) as client:
        work = [reviewer(client, n, word, load, job) for n, word in enumerate(words)]
        everyone = asyncio.gather(*work)
        for share in KILLS:
            while len(load.acknowledged) < share * job.decisions and not everyone.done():
                await asyncio.sleep(0.01)
            server.kill()
            await asyncio.to_thread(server.start)
        await everyone


def measure(url: str, root: Path, job: Job, begun: type[Server] = Server) -> dict[str, object]:
    """Runs the load on one database and compares what it holds with what was acknowledged."""
    data = database.connect(url)
    folder = read(root)
    with data.writing() as connection:
        reviewers.add_reviewer(connection, "admin", admin=True)
        for number in range(job.reviewers):
            reviewers.add_reviewer(connection, f"reviewer {number}")
        people = [
            reviewer for reviewer in reviewers.list_reviewers(connection) if not reviewer.admin
        ]
        words = [reviewers.open_session(connection, reviewer, Lifetime()) for reviewer in people]
        queue.add_set_items(connection, folder, read_plan(folder.content))
    load = Load()
    server = begun(root, url)
    began = time.perf_counter()
    try:
        asyncio.run(run(server, words, load, job))
    finally:
        server.kill()
    took = time.perf_counter() - began
    with data.reading() as connection:
        stored = dict(connection.execute(select(decisions.c.key, decisions.c.id)).all())
        twice = connection.execute(
            select(assignments.c.item)
            .group_by(assignments.c.item, assignments.c.reviewer)
            .having(func.count() > 1)
        ).all()
        voted = Counter(connection.execute(select(decisions.c.item)).scalars())
    milliseconds = 1000 * np.array(load.seconds)
    return {
        "database": url.partition(":")[0],
        "acknowledged": len(load.acknowledged),
        "lost": sum(stored.get(key) != id_ for key, id_ in load.acknowledged),
        "unknown": len(set(stored) - {key for key, _ in load.acknowledged}),
        "doubled": sum(count > 1 for count in voted.values()),
        "served_twice": len(twice),
        "sent_again": load.repeated,
        "a_second": round(len(load.acknowledged) / took, 1),
        **{f"p{p}_ms": round(float(np.percentile(milliseconds, p)), 1) for p in (50, 95, 99)},
    }


def main() -> None:
    """Prints a table, or with --json the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--reviewers", type=int, default=50)
    parser.add_argument("--think", type=float, default=0.4)
    parser.add_argument("--only", choices=["sqlite", "postgresql"])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    job = Job(arguments.decisions, arguments.reviewers, arguments.think)
    figures = []
    for kind in ("sqlite", "postgresql"):
        if arguments.only in (None, kind):
            with tempfile.TemporaryDirectory() as folder:
                figures.append(measure_on(kind, Path(folder), job))
    if arguments.json:
        print(json.dumps(figures))
        return
    for name in figures[0]:
        print(f"{name:<14}" + "".join(f"{figure[name]!s:>14}" for figure in figures))


def measure_on(kind: str, root: Path, job: Job, server: type[Server] = Server) -> dict[str, object]:
    """The figures of one kind of database, in a set of its own; `server`: how it is begun."""
    make_set(root, job.decisions + 3 * job.reviewers)
    if kind == "sqlite":
        return measure(database.default_url(root), root, job, server)
    import pgserver

    postgres = pgserver.get_server(root / "postgres")
    try:
        return measure(postgres.get_uri(), root, job, server)
    finally:
        postgres.cleanup()


if __name__ == "__main__":
    main()
