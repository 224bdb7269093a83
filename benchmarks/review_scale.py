"""Response times of the pages of a large review, and the restart time of its server.

    python benchmarks/review_scale.py [--pairs 100000] [--reviewers 50] [--seconds 60] [--think 4]

For SQLite and for PostgreSQL (a separate server, from the package `pgserver`): a set over a few
small pictures, most of which is already reviewed by two votes per pair; then reviewers work over
HTTP on loopback with pauses between answers and open the overview now and then, while the admin
reloads the dashboard. Afterwards the server is killed and restarted, and its counts are compared
with a recount of all votes.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import httpx2 as httpx
import numpy as np
from review_load import Server, make_set
from sqlalchemy import insert, select, text, update

from steadyeye.data.annotations.review_set import read
from steadyeye.review import database
from steadyeye.review.database import assignments, decisions, items
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.counts import compact_counts
from steadyeye.review.protocol.reviewers import Lifetime
from steadyeye.review.protocol.stages import read_plan
from steadyeye.review.results.recount import check_counts
from steadyeye.review.web.access import COOKIE, make_csrf_word
from steadyeye.review.workflow import queue

VOTES = {"anchors": 1, "pairs": 2, "joint": 0}
DONE = 0.8  # of the pairs, before the load begins
DOUBTED = 0.01  # of those
GOLD = 20  # questions
GOOD = {"quality": "good", "labels": ["cat"]}
YES = {"correct": "yes", "similar": "yes", "reasons": []}
NO = {"correct": "yes", "similar": "no", "reasons": ["motion", "blur"]}
BATCH = 10_000
SETTLE = 5.0  # seconds of load that are not measured: connections are made


@dataclass
class Times:
    """Seconds of every request, by page."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, page: str, began: float) -> None:
        """Notes a request that began at a time and is answered now."""
        self.seconds[page].append(time.perf_counter() - began)

    def describe(self, page: str) -> str:
        """Median and 95th percentile, ms, and of how many requests."""
        took = 1000 * np.array(self.seconds[page])
        middle, high = np.percentile(took, (50, 95))
        return f"{middle:.0f} / {high:.0f} ({len(took)})"


def make_review(root: Path, pairs: int) -> None:
    """A set of `pairs` pairs with anchors to review, two votes a pair, and gold questions."""
    make_set(root, pairs)
    path = root / "set.json"
    content = json.loads(path.read_text())
    known = {f"v{number}/1": YES for number in range(GOLD)}
    content["review"] = {"stages": VOTES, "gold": {"answers": {"pairs": known}}}
    path.write_text(json.dumps(content))


class Votes:
    """Votes that were given before, written many at a time."""

    def __init__(self, connection, people):
        self.connection, self.people = connection, people
        self.random = random.Random(0)
        self.assignments, self.decisions = [], []

    def add(self, item, voters, answer) -> None:
        """The same answer of so many reviewers, or of these."""
        chosen = self.random.sample(self.people, voters) if isinstance(voters, int) else voters
        for who in chosen:
            number = len(self.decisions)
            self.assignments.append(
                {
                    **{"item": item.id, "reviewer": who, "nonce": "", "made_at": time.time()},
                    **{"stage": item.stage, "position": item.position},
                    **{"answered": True, "released": False},
                }
            )
            self.decisions.append(
                {
                    **{"item": item.id, "reviewer": who, "key": f"before-{number:09d}"},
                    **{"kind": "answer", "answer": answer, "comment": "", "replaces": None},
                    **{"seconds": round(self.random.uniform(1, 9), 1), "version": "before"},
                    "made_at": time.time(),
                }
            )

    def write(self) -> None:
        """Writes them."""
        for table, rows in ((assignments, self.assignments), (decisions, self.decisions)):
            for start in range(0, len(rows), BATCH):
                self.connection.execute(insert(table), rows[start : start + BATCH])


def mark(connection, ids, **values) -> None:
    """Sets columns of items."""
    for start in range(0, len(ids), BATCH):
        chosen = items.c.id.in_(ids[start : start + BATCH])
        connection.execute(update(items).where(chosen).values(**values))


def fill(connection, plan) -> None:
    """Most of the review, as if it had been done: all anchors, most pairs, some joint votes."""
    people = [p.id for p in reviewers.list_reviewers(connection) if not p.admin]
    votes = Votes(connection, people)
    rows = connection.execute(select(items).order_by(items.c.position)).all()
    anchors = [row for row in rows if row.stage == "anchors"]
    pairs = [row for row in rows if row.stage == "pairs" and row.gold is None]
    done = pairs[: int(DONE * len(pairs))]
    doubted = done[: int(DOUBTED * len(done))]
    for row in anchors:
        votes.add(row, 1, GOOD)
    for row in done[len(doubted) :]:
        votes.add(row, 2, YES)
    for row in doubted:
        votes.add(row, 2, NO)
    mark(connection, [r.id for r in anchors], state="done", verdict="accepted", assigned=1)
    mark(connection, [r.id for r in pairs], state="open", parent="accepted")
    finished = {"state": "done", "assigned": 2, "decided": 2}
    mark(connection, [r.id for r in done[len(doubted) :]], verdict="accepted", **finished)
    queue.add_items(
        connection, [queue.Item("joint", r.key, r.unit, r.payload) for r in doubted], plan
    )
    joint = connection.execute(select(items).where(items.c.stage == "joint")).all()
    for row in joint[::2]:
        votes.add(row, people, NO)
    settled = {row.key for row in joint[::2]}
    outcome = {"verdict": "rejected", "reason": "blur, motion"}
    both = [row.id for row in doubted if row.key in settled]
    mark(connection, both, **finished, **outcome)
    mark(connection, [r.id for r in doubted if r.key not in settled], verdict="doubted", **finished)
    everybody = {"state": "done", "assigned": len(people), "decided": len(people)}
    mark(connection, [row.id for row in joint[::2]], **everybody, **outcome)
    votes.write()
    compact_counts(connection)


def settle(data) -> None:
    """Does what PostgreSQL's autovacuum has long done where votes came in over days."""
    if data.engine.dialect.name == "postgresql":
        with data.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text("VACUUM ANALYZE"))


@dataclass(frozen=True)
class Job:
    """The load: `think` is the mean of the pauses between two answers of a reviewer, seconds."""

    pairs: int
    reviewers: int
    seconds: float
    think: float


async def review(client: httpx.AsyncClient, word: str, times: Times, job: Job, number: int) -> None:
    """One reviewer: the overview, a stage, then answers with pauses, and the overview again."""
    draws = random.Random(number)
    headers = {"x-csrf-token": make_csrf_word(word), "cookie": f"{COOKIE}={word}"}
    end = time.perf_counter() + job.seconds + SETTLE
    stage = "joint" if number % 10 == 0 else "pairs"
    content = await ask(client, "GET", f"/stages/{stage}.json", headers)
    while content["next"] and time.perf_counter() < end:
        await asyncio.sleep(draws.uniform(0, 2 * job.think))
        measured = time.perf_counter() > end - job.seconds
        served = content["next"][0]
        body = {"assignment": served["assignment"], "nonce": served["nonce"], "seconds": 1.0}
        body |= {"key": f"{number}-{draws.getrandbits(80):020x}"}
        body |= {"answer": NO if draws.random() < DOUBTED else YES}
        began = time.perf_counter()
        content = await ask(client, "POST", "/decisions", headers, body)
        if measured:
            times.add("decision and next pair", began)
        if draws.random() < 0.1:
            began = time.perf_counter()
            await ask(client, "GET", "/", headers)
            if measured:
                times.add("overview", began)
            began = time.perf_counter()
            content = await ask(client, "GET", f"/stages/{stage}.json", headers)
            if measured:
                times.add("stage and next pair", began)


async def administer(client: httpx.AsyncClient, word: str, times: Times, job: Job) -> None:
    """The admin, who reloads the dashboard every second."""
    headers = {"cookie": f"{COOKIE}={word}"}
    end = time.perf_counter() + job.seconds + SETTLE
    while time.perf_counter() < end:
        began = time.perf_counter()
        await ask(client, "GET", "/dashboard", headers)
        if began > end - job.seconds:
            times.add("dashboard", began)
        await asyncio.sleep(1)


async def ask(client: httpx.AsyncClient, method, path, headers, body=None):
    """The answer to a request: content of JSON, text of a page."""
    answer = await client.request(method, path, headers=headers, json=body)
    if answer.status_code != 200:
        raise SystemExit(f"{path}: {answer.status_code} {answer.text[:500]}")
    is_json = answer.headers["content-type"].startswith("application/json")
    return answer.json() if is_json else answer.text


async def run(address: str, words: list[str], times: Times, job: Job) -> None:
    """All reviewers and the admin at once; `words`: of their sessions, the admin's first."""
    # shorter than the server waits for a further request
    limits = httpx.Limits(max_connections=job.reviewers + 1, keepalive_expiry=2.0)
    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=120) as client:
        work = [review(client, word, times, job, n) for n, word in enumerate(words[1:])]
        await asyncio.gather(administer(client, words[0], times, job), *work)


def start(server: Server, word: str) -> float:
    """Seconds until a server that was killed shows the overview again."""
    began = time.perf_counter()
    server.process = server.begin()
    with httpx.Client(base_url=server.address, timeout=60) as client:
        while time.perf_counter() < began + 120:
            try:
                answer = client.get("/index.json", headers={"cookie": f"{COOKIE}={word}"})
            except httpx.TransportError:
                time.sleep(0.01)
                continue
            if answer.status_code == 200:
                return time.perf_counter() - began
    raise SystemExit("the server does not answer")


def measure(url: str, root: Path, job: Job) -> dict[str, str]:
    """What each page took, on one database."""
    make_review(root, job.pairs)
    folder = read(root)
    plan = read_plan(folder.content)
    data = database.connect(url)
    began = time.perf_counter()
    with data.writing() as connection:
        for number in range(job.reviewers + 1):
            name = f"reviewer {number}" if number else "admin"
            reviewers.add_reviewer(connection, name, admin=not number)
        people = reviewers.list_reviewers(connection)
        words = [reviewers.open_session(connection, reviewer, Lifetime()) for reviewer in people]
        queue.add_set_items(connection, folder, plan)
    first = time.perf_counter() - began
    with data.writing() as connection:
        fill(connection, plan)
    settle(data)
    times = Times()
    server = Server(root, url)
    try:
        start_words = words[1]
        asyncio.run(run(server.address, words, times, job))
        again = []
        for _ in range(5):
            server.kill()
            again.append(start(server, start_words))
    finally:
        server.kill()
    with data.reading() as connection:
        faults = check_counts(connection, plan)
        total = connection.execute(select(decisions.c.id)).all()
    pages = {page: times.describe(page) for page in sorted(times.seconds)}
    return {
        "database": url.partition(":")[0],
        "decisions": f"{len(total):,}",
        **pages,
        "first start, s": f"{first:.1f}",
        "restart, s": f"{np.median(again):.1f} ({max(again):.1f} at most)",
        "counts": "; ".join(faults)[:300] or "equal a recount",
    }


def main() -> None:
    """Prints a table: pages with median and 95th percentile in ms, and the number of requests."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--reviewers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--think", type=float, default=4)
    parser.add_argument("--only", choices=["sqlite", "postgresql"])
    arguments = parser.parse_args()
    job = Job(arguments.pairs, arguments.reviewers, arguments.seconds, arguments.think)
    figures = []
    for kind in ("sqlite", "postgresql"):
        if arguments.only not in (None, kind):
            continue
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            if kind == "sqlite":
                figures.append(measure(database.default_url(root), root, job))
                continue
            import pgserver

            postgres = pgserver.get_server(root / "postgres")
            try:
                figures.append(measure(postgres.get_uri(), root, job))
            finally:
                postgres.cleanup()
    for name in figures[0]:
        print(f"{name:<24}" + "".join(f"{figure[name]:>36}" for figure in figures))


if __name__ == "__main__":
    main()
