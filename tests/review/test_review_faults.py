"""Faults beneath a review: acknowledged decisions are stored, others are not confirmed."""

import asyncio
import copy
import json
import logging
import os
import re
import shutil
import sqlite3
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from itertools import cycle
from pathlib import Path

import forked
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event, text

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.review import database
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.stages import STAGES
from steadyeye.review.transactions import UnavailableError
from steadyeye.review.web.app import build_app

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import review_faults  # noqa: E402 - tried here too, for a shorter time
import review_load  # noqa: E402 - its set is reviewed here too

YES = {"correct": "yes", "similar": "yes", "reasons": []}
KEY = "a-request-of-mine"
PAGE = {"accept": "text/html"}
GETS = ("/", "/index.json", "/stages/pairs", "/stages/pairs.json", "/dashboard", "/dashboard.json")


@pytest.fixture(scope="module")
def set_and_link(tmp_path_factory):
    root = tmp_path_factory.mktemp("made") / "set"
    review_load.make_set(root, 40)
    with closing_database(root) as data, data.writing() as c:
        return root, reviewers.add_reviewer(c, "admin", admin=True)


@contextmanager
def closing_database(root):
    data = database.connect(database.default_url(root))
    yield data
    data.engine.dispose()


@pytest.fixture
def data(set_and_link, tmp_path, monkeypatch):
    monkeypatch.setattr(database, "WAIT", 0.05)
    shutil.copytree(set_and_link[0], tmp_path, dirs_exist_ok=True)
    return database.connect(database.default_url(tmp_path))


@pytest.fixture
def page(set_and_link, data, tmp_path):
    """The browser of the admin, who may see everything."""
    site = build_app(review_set.read(tmp_path), data, ["testserver"])
    browser = TestClient(site)
    signed_in = browser.post("/sign-in", json={"token": set_and_link[1]})
    browser.headers["x-csrf-token"] = signed_in.json()["csrf"]
    return browser


@pytest.fixture
def answer(page):
    item = page.get("/stages/pairs.json").json()["next"][0]
    body = {"assignment": item["assignment"], "nonce": item["nonce"], "key": KEY}
    return {**body, "answer": YES, "seconds": 1.0}


def stored(path):
    with closing(sqlite3.connect(path)) as db:
        return [key for (key,) in db.execute("select key from decisions order by id")]


@contextmanager
def locked(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        yield
        other.execute("rollback")


@contextmanager
def moved(path):
    path.rename(path.with_name("elsewhere"))
    yield
    path.with_name("elsewhere").rename(path)


@contextmanager
def replaced(path):
    with moved(path):
        shutil.copyfile(path.with_name("elsewhere"), path)
        yield


@contextmanager
def overwritten(path):
    """Another review copied over it: the inode stays."""
    before = path.read_bytes()
    number = bytes(byte ^ 255 for byte in before[68:72])
    path.write_bytes(before[:68] + number + before[72:])
    yield
    path.write_bytes(before)


@contextmanager
def without_log(path):
    with moved(path.with_name(f"{path.name}-wal")):
        yield


GONE = [moved, replaced, overwritten, without_log]


@contextmanager
def full(data):
    """No page more: SQLite says the same of a disk that is full."""

    def limit(connection, _, __):
        pages = connection.execute("pragma page_count").fetchone()[0]
        connection.execute(f"pragma max_page_count = {pages}")

    event.listen(data.engine, "checkout", limit)
    yield
    event.remove(data.engine, "checkout", limit)
    with data.reading() as c:
        c.exec_driver_sql("pragma max_page_count = 1000000")


def fill(data):
    """Writes until no page is left."""
    while True:
        data.write(lambda c: c.execute(text("insert into added_sets select hex(randomblob(900))")))


def refused(page, answer, reason):
    response = page.post("/decisions", json=answer)
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")
    assert reason in response.json()["detail"]


def test_while_the_database_is_locked_nothing_is_acknowledged(page, answer, tmp_path):
    path = tmp_path / "review.sqlite"
    with locked(path):
        refused(page, answer, "another program holds the database")
        codes = {get: page.get(get, headers=PAGE).status_code for get in GETS}
    # what only reads goes on; a stage gives out items, which it notes
    assert codes == {get: 503 if "stages" in get else 200 for get in GETS}
    page.get("/stages/pairs.json")  # a write by somebody else stores nothing of it
    assert stored(path) == []
    first = page.post("/decisions", json=answer).json()["decision"]
    assert page.post("/decisions", json=answer).json()["decision"] == first
    assert stored(path) == [KEY]


def test_writes_that_failed_together_are_not_stored_later(data, tmp_path):
    """Writers wait behind one that waits for the lock: all hear of it, none is written later."""
    outcomes = []

    def add(name):
        try:
            data.write(lambda c: reviewers.add_reviewer(c, name))
            outcomes.append(name)
        except UnavailableError:
            outcomes.append(None)

    with locked(tmp_path / "review.sqlite"):
        writers = [threading.Thread(target=add, args=(f"ann {n}",)) for n in range(8)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
    add("ben")
    assert outcomes == [*[None] * 8, "ben"]
    with data.reading() as c:
        assert [person.name for person in reviewers.list_reviewers(c)] == ["admin", "ben"]


@pytest.mark.parametrize("fault", GONE)
def test_a_database_that_is_gone_takes_no_decision_and_says_so(
    page, answer, tmp_path, caplog, fault
):
    path = tmp_path / "review.sqlite"
    with fault(path), caplog.at_level(logging.ERROR, "uvicorn.error"):
        refused(page, answer, "deleted or replaced")
        for get in GETS:
            response = page.get(get, headers=PAGE)
            assert response.status_code == 503, get
            assert "deleted or replaced" in response.text
            assert "/static/again.js" in response.text
            assert str(tmp_path) not in response.text
    assert len(caplog.messages) == 1
    assert f"'{path}' is no longer the file that the server opened" in caplog.messages[0]
    assert page.post("/decisions", json=answer).status_code == 200
    assert stored(path) == [KEY]


def test_a_deleted_database_is_not_created_again(page, answer, tmp_path):
    path = tmp_path / "review.sqlite"
    path.unlink()
    page.app.state.database.engine.dispose()  # its next connection opens the file again
    refused(page, answer, "deleted or replaced")
    assert not path.exists()


def test_nothing_is_acknowledged_on_a_full_disk(page, answer, data, tmp_path):
    huge = {**answer, "comment": "\U0001f600" * 2000}  # more than a page
    with full(data):
        with pytest.raises(UnavailableError, match="disk of the database is full"):
            fill(data)
        refused(page, huge, "the disk of the database is full")
        assert page.get("/dashboard").status_code == 200
    assert page.post("/decisions", json=huge).status_code == 200
    assert stored(tmp_path / "review.sqlite") == [KEY]


def test_after_an_answer_that_was_lost_the_same_key_tells(page, answer, data, tmp_path):
    """The file goes away between the commit and the answer."""
    path = tmp_path / "review.sqlite"

    @event.listens_for(data.engine, "commit")
    def commit(connection):
        if not connection.get_execution_options()["reads_only"]:
            connection.connection.commit()
            path.rename(tmp_path / "elsewhere")

    refused(page, answer, "deleted or replaced")
    event.remove(data.engine, "commit", commit)
    (tmp_path / "elsewhere").rename(path)
    assert stored(path) == [KEY]
    assert page.post("/decisions", json=answer).status_code == 200
    assert stored(path) == [KEY]


def test_the_order_of_decisions_is_that_of_storing_though_the_clock_goes_back(
    page, answer, data, monkeypatch
):
    first = page.post("/decisions", json=answer).json()["decision"]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 86_400)
    assert page.get("/").status_code == 200
    no = {"correct": "no", "similar": "yes", "reasons": []}
    later = {**answer, "key": "another-request", "answer": no, "replaces": first}
    second = page.post("/decisions", json=later).json()["decision"]
    undone = page.post(f"/decisions/{second}/undo", json={"key": "a-third-request"})
    assert undone.status_code == 200
    assert page.post("/decisions", json={**answer, "key": "a-fourth-request"}).status_code == 200
    with data.reading() as c:
        rows = c.execute(text("select id, replaces, made_at from decisions order by id")).all()
    assert [row.replaces for row in rows] == [None, 1, 2, None]
    assert rows[0].made_at > rows[3].made_at


@pytest.mark.parametrize("fault", ["missing", "damaged", "empty", "folder", "loop"])
def test_a_picture_that_is_no_more_is_404(page, tmp_path, fault):
    name = page.get("/stages/pairs.json").json()["next"][0]["payload"]["image"]
    path = review_set.image_path(tmp_path, name)
    content = path.read_bytes()
    path.unlink()
    if fault in ("damaged", "empty"):
        path.write_bytes(content[:-1] if fault == "damaged" else b"")
    elif fault == "folder":
        path.mkdir()
    elif fault == "loop":
        path.symlink_to(path)
    refused = page.get(f"/images/{name}")
    assert refused.status_code == 404
    assert refused.json()["detail"].startswith("the image")


class Forked(review_load.Server):
    """The command in a fork of a process that has imported most of what it needs."""

    def begin(self):
        return forked.Command(*self.words)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR is not set")
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("file deleted", "sqlite"),
        ("connections ended", "postgresql"),
        ("connections cut", "postgresql"),
    ],
)
def test_an_acknowledged_decision_is_stored_once_despite_a_fault(fault, kind):
    """As a log outside the server has it."""
    figures = asyncio.run(review_faults.try_fault(fault, kind, 1.5, 4, Forked))
    assert review_faults.list_losses(figures, 4) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"stored": 92}, "acknowledged decisions are not stored"),
        ({"acknowledged": 0, "stored": 0}, "nothing was acknowledged"),
        ({"doubled": 1}, "items have two decisions of one answer"),
        ({"given up": 1}, "decisions were not taken after the fault"),
        ({"not acknowledged, stored": 1}, "decisions are stored that were never acknowledged"),
        ({"pages": {200: 9, 500: 1}}, "pages had other answers than 200 and 503"),
    ],
)
def test_the_benchmark_of_faults_names_each_loss(change, reason):
    row = {"fault": "locked", "database": "sqlite", "acknowledged": 93, "stored": 93, "doubled": 0}
    row |= {"given up": 0, "not acknowledged, stored": 0, "pages": {0: 1, 200: 9, 503: 3}}
    assert review_faults.list_losses(row, 4) == []
    (loss,) = review_faults.list_losses(row | change, 4)
    assert loss.startswith(f"locked, sqlite: {reason}: ")


# ---- databases that are none


def write_garbage(path):
    path.write_bytes(b"this is no database" * 500)


def write_other_tables(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("create table users (id)")


def write_own_names(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("create table items (id)")


def cut_short(path):
    os.truncate(path, 5_000)


def cut_head(path):
    os.truncate(path, 30)


def scramble_head(path):
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 200)


def make_folder(path):
    path.unlink()
    path.mkdir()


def lose_token(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("delete from identity")
        db.commit()


FOREIGN = {
    write_garbage: "is damaged",
    cut_short: "is damaged",
    cut_head: "is damaged",
    scramble_head: "is damaged",
    write_other_tables: r"holds something else than a review \(users\)",
    write_own_names: "of another version",
    lose_token: "of another version",
    make_folder: "cannot be opened",
}


@pytest.mark.parametrize("fault", FOREIGN)
def test_an_invalid_database_is_refused_in_one_line(set_and_link, tmp_path, fault):
    path = tmp_path / "review.sqlite"
    if not fault.__name__.startswith("write"):
        shutil.copyfile(set_and_link[0] / "review.sqlite", path)
    fault(path)
    with pytest.raises(UsageError, match=FOREIGN[fault]) as refusal:
        database.connect(database.default_url(tmp_path))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "url", ["nonsense", "mysql://x/y", "sqlite://", "sqlite:////no/such/folder/x.sqlite"]
)
def test_an_address_of_no_database_is_refused_in_one_line(url):
    with pytest.raises(UsageError, match=r"cannot (use|open) the database") as refusal:
        database.connect(url)
    assert "\n" not in str(refusal.value)


def test_an_absent_postgresql_server_is_an_error_in_one_line():
    with pytest.raises(UsageError, match="the database does not answer") as refusal:
        database.connect("postgresql://nobody:secret@127.0.0.1:1/review")
    assert "secret" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


# ---- requests that make no sense

DEEP = "[" * 3_000 + "]" * 3_000
NUMBERS = (
    *("0", "-1", "1.5", "1e400", "-1e400", "NaN", "Infinity", "-Infinity", "true", "null"),
    *(str(1 << 31), str(1 << 53), str(1 << 63), "1" + "0" * 30, "1" + "0" * 400, "9" * 5_000),
)
TEXTS = (
    *('""', '"x"', '"\\ud800"', '"a\\udfffb"', '"a\\u0000b"', '"\\ufffe"', '"' + "x" * 9_000 + '"'),
    *("[]", "{}", "[[[]]]", '{"a": {"b": []}}', '{"\\ud800": 1}', '{"\\u0000": 1}', DEEP),
)
BODIES = (
    *("", " ", "{", "nul", "[1,", '{"a": }', '"', "\x00", "{}{}", "'a'", "undefined", DEEP),
    *NUMBERS,
    *TEXTS,
)
BYTES = (b"\xff\xfe", b"\x80{}", b'{"key": "\xed\xa0\x80"}', b"\xef\xbb\xbf{}", b"\x1f\x8b\x08\x00")
PATHS = (
    *("0", "-1", "99", "1.5", "x", "NaN", str(1 << 31), str(1 << 63), "1" + "0" * 30, "9" * 5_000),
    *(
        "%00",
        "%ed%a0%80",
        "%ff",
        "..",
        "%2e%2e",
        "a%2fb",
        "%F0%9F%98%80",
        "pairs.json.json",
        "None",
    ),
)
ROUTES = {
    "GET /": None,
    "GET /r": None,
    "GET /index.json": None,
    "GET /stages/{}": None,
    "GET /assignments/{}/nearby.json": None,
    "GET /images/{}": None,
    "GET /guidelines/{}": None,
    "GET /decisions": None,
    "GET /decisions.json": None,
    "GET /items": None,
    "GET /items.json": None,
    "GET /dashboard": None,
    "GET /dashboard.json": None,
    "POST /sign-in": {"token": "x"},
    "POST /sign-out": {},
    "POST /decisions": {
        **{"assignment": 1, "nonce": "x", "key": KEY, "answer": YES, "seconds": 1.0},
        **{"comment": "", "replaces": None},
    },
    "POST /decisions/{}/undo": {"key": KEY},
    "POST /stages/{}/quiz": {"item": 1, "answer": YES},
    "POST /reviewers": {"name": "ben"},
    "POST /reviewers/{}/link": {},
    "POST /reviewers/{}/revoke": {},
    "POST /reviewers/{}/pause": {"why": ""},
}
"""What is asked of the app → the body of a request; None: it has none."""
QUERIES = ("stage", "answer", "text", "page", "kind", "change")


@pytest.fixture(scope="module")
def app(set_and_link, tmp_path_factory):
    root = tmp_path_factory.mktemp("fuzzed") / "set"
    shutil.copytree(set_and_link[0], root)
    data = database.connect(database.default_url(root))
    return build_app(review_set.read(root), data, ["testserver"])


@pytest.fixture
def admin(app, set_and_link):
    """A browser that sends everything as it is; `served`: an item that may be answered."""
    with TestClient(app) as browser:  # begun once: else each request begins a thread and a loop
        word = browser.post("/sign-in", json={"token": set_and_link[1]}).json()["csrf"]
        browser.headers |= {"x-csrf-token": word, "content-type": "application/json"}
        yield browser


def test_every_route_is_tried(app):
    routes = {
        f"{method.upper()} {re.sub('{[a-z]+}', '{}', path)}"
        for path, methods in app.openapi()["paths"].items()
        for method in methods
    }
    assert routes == set(ROUTES)


def bodies(fields):
    """Every odd body, and every odd value of every field of a right one."""
    yield from (body.encode("utf-8", "surrogatepass") for body in BODIES)
    yield from BYTES
    for name in fields:
        rest = "".join(
            f"{json.dumps(k)}: {json.dumps(v)}, " for k, v in fields.items() if k != name
        )
        for value in (*NUMBERS, *TEXTS):
            yield f"{{{rest}{json.dumps(name)}: {value}}}".encode()


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
def test_nothing_that_is_sent_is_a_fault_of_the_server(admin, route):
    method, path = route.split()
    fields = ROUTES[route]
    if route == "POST /decisions":
        served = admin.get("/stages/pairs.json").json()["next"][0]
        fields = {**fields, "assignment": served["assignment"], "nonce": served["nonce"]}
    place = path.replace("{}", "pairs" if path.startswith("/stages") else "99")
    sent = [(path.replace("{}", part), b"{}") for part in PATHS] if "{}" in path else []
    if path.startswith(("/decisions", "/items", "/stages")) and method == "GET":
        odd = (f"{name}={part}" for name in QUERIES for part in (*PATHS, "", "&page=2", "%27--"))
        sent += [(f"{place}?{query}", b"") for query in odd]
    if method == "POST":
        sent += [(place, body) for body in bodies(fields)]
    kinds = cycle(["application/json", "text/html"])
    for (address, body), kind in zip(sent or [(place, b"")] * 2, kinds, strict=False):
        content = {"content": body} if method == "POST" else {}
        answer = admin.request(method, address, headers={"accept": kind}, **content)
        assert answer.status_code < 500, (address, body)
        if answer.status_code >= 400 and kind == "application/json":
            assert isinstance(answer.json()["detail"], str), (address, body)


@pytest.mark.parametrize("seconds", ["NaN", "Infinity", "1e400", "1" + "0" * 400])
def test_seconds_that_are_no_number_are_refused(admin, seconds):
    body = json.dumps({**ROUTES["POST /decisions"], "seconds": 0}).replace("0,", f"{seconds},")
    answer = admin.post("/decisions", content=body)
    assert answer.status_code in (400, 422)
    assert "\n" not in answer.json()["detail"]


RIGHT = {
    "anchors": {"quality": "good", "labels": ["cat"]},
    "pairs": {"correct": "yes", "similar": "no", "reasons": ["blur"]},
    "boxes": {"boxes": [{"box": [0, 0, 1, 1], "label": "cat", "track": 1}]},
}
ODD = (None, True, 0, -1, 1.5, 10**30, float("nan"), "", "x", [], [[]], {}, {"a": 1}, [None], [{}])


def alter(value):
    """The value with each of its parts replaced by everything odd."""
    yield from ODD
    if isinstance(value, dict | list):
        for key, part in list(value.items() if isinstance(value, dict) else enumerate(value)):
            for odd in alter(part):
                altered = copy.copy(value)
                altered[key] = odd
                yield altered


@pytest.mark.parametrize("stage", STAGES)
def test_an_answer_of_any_shape_is_taken_or_refused(stage):
    names = (stage, "pairs") if stage == "joint" else (stage, "boxes")
    right = next((RIGHT[name] for name in names if name in RIGHT), {})
    for answer in alter(right):
        if isinstance(answer, dict):
            with suppress(UsageError):
                json.dumps(STAGES[stage].check(answer, ("cat", "dog")), allow_nan=False)
