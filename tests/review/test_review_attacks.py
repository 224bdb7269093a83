"""The review app under attack: what is not allowed is refused, and told in one line."""

import json
import os
import shutil
import struct
import sys
import tempfile
import zlib
from pathlib import Path

import forked
import numpy as np
import pytest
import simplejpeg
from fastapi.testclient import TestClient
from sqlalchemy import text

from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.spec import Spec
from steadyeye.data.annotations import review_set
from steadyeye.data.images import image_file
from steadyeye.review import database
from steadyeye.review.protocol import reviewers
from steadyeye.review.sampling.sampling import Sampling, read_frames, write_set
from steadyeye.review.web import access
from steadyeye.review.web.app import build_app

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import review_load  # noqa: E402 - its set is reviewed here too

YES = {"correct": "yes", "similar": "yes", "reasons": []}
KEY = "a-request-of-mine"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A set under review in a new database, and the links of its people."""
    root = tmp_path_factory.mktemp("made") / "set"
    review_load.make_set(root, 40)
    with database.connect(database.default_url(root)).writing() as c:
        return root, {
            "admin": reviewers.add_reviewer(c, "admin", admin=True),
            "ann": reviewers.add_reviewer(c, "ann"),
            "ben": reviewers.add_reviewer(c, "ben"),
        }


@pytest.fixture
def data(made, tmp_path):
    shutil.copytree(made[0], tmp_path, dirs_exist_ok=True)
    return database.connect(database.default_url(tmp_path))


@pytest.fixture
def people_of(made):
    return made[1]


@pytest.fixture
def site(tmp_path, data, people_of):
    return build_app(review_set.read(tmp_path), data, ["testserver"])


def client(site, token=None, **headers):
    session = TestClient(site, headers=headers, follow_redirects=False)
    if token:
        session.cookies.set(access.COOKIE, token)
        session.headers.setdefault("x-csrf-token", access.make_csrf_word(token))
    return session


@pytest.fixture
def ann(site, people_of):
    return client(site, people_of["ann"])


@pytest.fixture
def ben(site, people_of):
    return client(site, people_of["ben"])


def served(session):
    return session.get("/stages/pairs.json").json()["next"][0]


def answer(item, key=KEY, **more):
    said = {"assignment": item["assignment"], "nonce": item["nonce"], "key": key}
    return {**said, "answer": YES, "seconds": 1.0, **more}


def test_without_a_link_there_is_nothing(site):
    stranger = client(site)
    for path in ("/", "/index.json", "/stages/pairs", "/dashboard", f"/images/{'0' * 64}.jpg"):
        assert stranger.get(path).status_code == 401, path
    assert stranger.post("/decisions", json={}).status_code in (401, 403)


@pytest.mark.parametrize("token", ["x", "", "' OR 1=1 --", "A" * 5000, "%00"])
def test_a_made_up_link_opens_nothing(site, token):
    assert client(site).get(f"/r/{token}").status_code in (401, 404)
    guess = client(site, cookie=f"{access.COOKIE}={token}")
    assert guess.get("/index.json").status_code == 401


def test_the_link_becomes_a_cookie_no_script_can_read(site, people_of):
    entered = client(site).get(f"/r/{people_of['ann']}")
    assert entered.status_code == 303
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


def test_tokens_are_not_kept(data, people_of, tmp_path):
    with data.reading() as c:
        kept = json.dumps(
            [list(map(str, row)) for row in c.execute(text("select * from reviewers"))]
        )
    for token in people_of.values():
        assert token not in kept
        assert token.encode() not in (tmp_path / "review.sqlite").read_bytes()


def test_what_was_given_to_one_is_not_another_ones_to_answer(ann, ben):
    refused = ben.post("/decisions", json=answer(served(ann)))
    assert (refused.status_code, refused.json()["detail"][:24]) == (
        409,
        "this item was not assign",
    )


def test_only_the_admin_sees_the_dashboard(site, ann, people_of):
    assert ann.get("/dashboard.json").status_code == 403
    assert ann.post("/reviewers", json={"name": "eve"}).status_code == 403
    assert ann.post("/reviewers/2/pause", json={"why": ""}).status_code == 403
    admin = client(site, people_of["admin"])
    assert admin.get("/dashboard.json").status_code == 200
    link = admin.post("/reviewers", json={"name": "eve"}).json()["link"]
    assert client(site).get(link.removeprefix("http://testserver")).status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"x-csrf-token": ""},
        {"x-csrf-token": "0" * 64},
        {"origin": "https://elsewhere.example"},
        {"content-type": "text/plain"},
    ],
)
def test_a_forged_request_is_refused(ann, headers):
    item = served(ann)
    sent = {"content-type": "application/json", **headers}
    refused = ann.post("/decisions", content=json.dumps(answer(item)), headers=sent)
    assert refused.status_code in (403, 415)
    assert ann.post("/decisions", json=answer(item)).status_code == 200


def test_another_host_name_is_refused(ann):
    assert ann.get("/index.json", headers={"host": "rebound.example"}).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/images/../set.json",
        "/images/%2e%2e%2freview.sqlite",
        "/images/..%2f..%2fetc%2fpasswd",
        "/static/../app.py",
        "/static/%2e%2e/database.py",
        f"/images/{'0' * 64}.jpg",
    ],
)
def test_only_files_of_the_set_are_served(ann, path):
    assert ann.get(path).status_code == 404


def test_an_image_of_the_set_is_served_and_its_neighbour_on_disk_is_not(ann, tmp_path):
    name = served(ann)["payload"]["image"]
    assert ann.get(f"/images/{name}").content == review_set.image_path(tmp_path, name).read_bytes()
    other = review_set.image_path(tmp_path, "f" * 64 + ".jpg")
    other.parent.mkdir(exist_ok=True)
    other.write_bytes(b"not of the set")
    assert ann.get(f"/images/{other.name}").status_code == 404


def test_strict_headers_on_every_answer(ann):
    for path in ("/", "/index.json", "/nowhere", "/static/review.css"):
        headers = ann.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_oversized_bodies_are_refused(ann):
    body = json.dumps(answer(served(ann), comment="x" * 1_000_000))
    head = {"content-type": "application/json"}
    assert ann.post("/decisions", content=body, headers=head).status_code == 413

    def drops():
        for _ in range(1_000):
            yield b"x" * 1_000

    # without a length, in pieces: it is counted as it comes
    assert ann.post("/decisions", content=drops(), headers=head).status_code == 413


def test_a_replayed_decision_adds_nothing_and_a_stale_one_is_refused(ann, data):
    item = served(ann)
    first = ann.post("/decisions", json=answer(item)).json()["decision"]
    assert ann.post("/decisions", json=answer(item)).json()["decision"] == first
    stale = ann.post("/decisions", json=answer(item, key="another-request"))
    assert (stale.status_code, stale.json()["detail"][:24]) == (409, "this was decided already")
    with data.reading() as c:
        assert c.execute(text("select count(*) from decisions")).scalar() == 1


def test_one_key_is_not_for_two_decisions(ann):
    one = served(ann)
    two = ann.post("/decisions", json=answer(one)).json()["next"][0]
    assert ann.post("/decisions", json=answer(two)).status_code == 409


@pytest.mark.parametrize(
    "change",
    [
        {"assignment": "1; DROP TABLE decisions"},
        {"answer": {"correct": "yes' --", "similar": "yes"}},
        {"answer": "yes"},
        {"seconds": -1},
        {"seconds": "NaN"},
        {"key": "short"},
        {"key": "x" * 65},
        {"replaces": [1]},
    ],
)
def test_a_decision_that_makes_no_sense_is_refused(ann, data, change):
    assert ann.post("/decisions", json=answer(served(ann)) | change).status_code == 422
    with data.reading() as c:
        assert c.execute(text("select count(*) from decisions")).scalar() == 0


def test_sql_and_html_in_words_stay_words(ann, data, site, people_of):
    nasty = "'); DROP TABLE decisions; -- <img src=x onerror=alert(1)>"
    ann.post("/decisions", json=answer(served(ann), comment=nasty))
    admin = client(site, people_of["admin"])
    admin.post("/reviewers", json={"name": nasty})
    with data.reading() as c:
        assert c.execute(text("select comment from decisions")).scalar() == nasty
    assert nasty in [one["name"] for one in admin.get("/dashboard.json").json()["reviewers"]]
    assert "<img src=x" not in admin.get("/dashboard").text


def test_a_label_with_html_is_escaped_on_the_page(tmp_path, site, data, ann):
    item = served(ann)
    with data.writing() as c:
        nasty = {**item["payload"], "labels": ["<script>alert(1)</script>"]}
        c.execute(database.items.update().values(payload=nasty))
    assert "<script>alert(1)" not in ann.get("/stages/pairs").text


def test_a_lost_link_can_be_renewed_and_the_old_one_is_dead(site, data, people_of):
    with data.writing() as c:
        fresh = reviewers.renew_token(c, "ann")
    assert client(site, people_of["ann"]).get("/index.json").status_code == 401
    assert client(site, fresh).get("/index.json").status_code == 200


def nothing(name, rows):
    return lambda done: None


def test_a_file_that_hangs_the_decoder_is_given_up(tmp_path):
    folder = tmp_path / "clip"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.png").write_bytes(
            image_file.encode(np.zeros((8, 8, 3), np.uint8), ".png")
        )
    (folder / "1.png").unlink()
    os.mkfifo(folder / "1.png")  # whoever opens it waits for ever
    spec = Spec("frames", {"path": str(folder), "k": 1})
    with pytest.raises(UsageError, match="gave no frame for 5 s; leave the file out"):
        write_set(
            read_frames([spec], tmp_path, nothing, 5), tmp_path / "set", Sampling("set", {}, None)
        )
    assert not (tmp_path / "set" / "set.json").exists()


def png_of(side):
    """A PNG file of `side`² pixels that is a few hundred kB: one bit each, all alike."""

    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(side // 8 + 1)) for _ in range(side)) + packer.flush()
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_decompression_bombs_are_refused_before_they_are_decoded():
    bomb = png_of(20_000)
    assert len(bomb) < 300_000
    with pytest.raises(SampleError, match=r"promises 400,000,000 pixels, over 268,435,456"):
        image_file.decode(bomb, "bomb.png")
    small = bytearray(simplejpeg.encode_jpeg(np.zeros((64, 64, 3), np.uint8)))
    at = small.index(b"\xff\xc0") + 5
    small[at : at + 4] = struct.pack(">HH", 65_500, 65_500)
    with pytest.raises(SampleError, match=r"promises 4,290,250,000 pixels"):
        image_file.decode(bytes(small), "bomb.jpg")


class Forked(review_load.Server):
    """The command in a fork of a process that has imported most of what it needs."""

    def begin(self):
        return forked.Command(*self.words)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR is not set")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(kind):
    job = review_load.Job(decisions=120, reviewers=12, think=0.05)
    # not in tmp_path: PostgreSQL runs as a user of its own, whom pytest's folders are closed to
    with tempfile.TemporaryDirectory() as folder:
        figures = review_load.measure_on(kind, Path(folder), job, Forked)
    assert figures["acknowledged"] >= job.decisions
    assert figures["sent_again"] > 0
    for name in ("lost", "unknown", "doubled", "served_twice"):
        assert figures[name] == 0, figures
