"""The review app under attack: forbidden requests are refused, each in one line."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import sqlite3
import struct
import sys
import tempfile
import time
import zlib
from contextlib import closing
from itertools import chain
from pathlib import Path

import forked
import numpy as np
import pytest
import simplejpeg
from fastapi import HTTPException
from fastapi.testclient import TestClient
from sqlalchemy import text

from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.spec import Spec
from steadyeye.data.annotations import review_set
from steadyeye.data.images import image_file
from steadyeye.review import database
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.reviewers import Lifetime
from steadyeye.review.sampling import decoding_process
from steadyeye.review.sampling.decoding_process import read_frames
from steadyeye.review.sampling.sampling import Sampling, write_set
from steadyeye.review.web import access
from steadyeye.review.web.access import MOST, MOST_OF_ADDRESS, WINDOW, Access, Guesses, find_network
from steadyeye.review.web.app import build_app

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import review_load  # noqa: E402 - its set is reviewed here too

YES = {"correct": "yes", "similar": "yes", "reasons": []}
KEY = "a-request-of-mine"


@pytest.fixture(scope="module")
def set_and_links(tmp_path_factory):
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
def data(set_and_links, tmp_path):
    shutil.copytree(set_and_links[0], tmp_path, dirs_exist_ok=True)
    return database.connect(database.default_url(tmp_path))


@pytest.fixture
def people_of(set_and_links):
    return set_and_links[1]


@pytest.fixture
def site(tmp_path, data, people_of):
    return build_app(review_set.read(tmp_path), data, ["testserver"])


def client(site, token=None, address="192.0.2.7", **headers):
    """A browser at an address; signed in with the token of a link, if one is given."""
    session = TestClient(site, headers=headers, follow_redirects=False, client=(address, 50_000))
    if token:
        session.headers["x-csrf-token"] = sign_in(session, token).json()["csrf"]
    return session


def sign_in(session, token):
    return session.post("/sign-in", json={"token": token})


@pytest.fixture
def ann(site, people_of):
    return client(site, people_of["ann"])


@pytest.fixture
def ben(site, people_of):
    return client(site, people_of["ben"])


def served(session):
    return session.get("/stages/pairs.json").json()["next"][0]


def answer(item, key=KEY, **more):
    body = {"assignment": item["assignment"], "nonce": item["nonce"], "key": key}
    return {**body, "answer": YES, "seconds": 1.0, **more}


def test_a_visitor_without_a_link_sees_nothing(site):
    stranger = client(site)
    for path in ("/", "/index.json", "/stages/pairs", "/dashboard", f"/images/{'0' * 64}.jpg"):
        assert stranger.get(path).status_code == 401, path
    assert stranger.post("/decisions", json={}).status_code in (401, 403)


def list_routes(site):
    """Every path that the app answers, with its methods; numbers stand for what is to be filled."""
    for route in site.routes:
        for inner in getattr(getattr(route, "original_router", route), "routes", [route]):
            yield re.sub(r"\{\w+\}", "1", inner.path), getattr(inner, "methods", None) or set()


def test_every_page_wants_a_session_and_every_change_its_word(site, ann):
    stranger, paths = client(site), []
    del ann.headers["x-csrf-token"]
    for path, methods in list_routes(site):
        if "GET" in methods and path != "/r":
            assert stranger.get(path).status_code == 401, path
            paths.append(path)
        if "POST" in methods and path != "/sign-in":
            for other in (stranger, ann):
                assert other.post(path, json={}).status_code == 403, path
            paths.append(path)
        assert methods <= {"GET", "HEAD", "POST"}
    assert {"/", "/dashboard", "/decisions", "/images/1", "/reviewers/1/revoke"} <= set(paths)


def test_a_made_up_link_opens_nothing(site):
    for token in ("x", "", "' OR 1=1 --", "A" * 5000, "%00", "\u0130"):
        assert sign_in(client(site), token).status_code in (401, 422), token
        guess = client(site, cookie=f"{access.COOKIE}={token}".encode())
        assert guess.get("/index.json").status_code == 401, token


def test_links_are_not_guessed_from_one_address(site, people_of):
    guesser = client(site)
    for _ in range(MOST_OF_ADDRESS):
        assert sign_in(guesser, "wrong").status_code == 401
    refused = sign_in(guesser, people_of["ann"])
    assert refused.status_code == 429
    assert 50 <= int(refused.headers["retry-after"]) <= 61
    # whoever sits elsewhere, or is signed in, notices nothing
    assert sign_in(client(site, address="192.0.2.8"), people_of["ann"]).status_code == 200


def test_links_are_not_guessed_from_many_addresses():
    now = [0.0]
    guesses = Guesses(clock=lambda: now[0])
    for number in range(MOST):
        guesses.check(f"10.0.{number // 256}.{number % 256}")
        guesses.add(f"10.0.{number // 256}.{number % 256}")
    with pytest.raises(HTTPException) as refused:
        guesses.check("192.0.2.7")
    assert refused.value.status_code == 429
    now[0] = WINDOW
    guesses.check("192.0.2.7")
    assert not guesses.recent


def test_an_ipv6_network_is_one_guesser():
    assert find_network("2001:db8:1:2::1") == find_network("2001:db8:1:2:ffff::7")
    assert find_network("2001:db8:1:2::1") != find_network("2001:db8:1:3::1")
    assert find_network("::ffff:192.0.2.7") == "192.0.2.7"


def test_the_link_becomes_a_cookie_no_script_can_read(site, people_of):
    cookie = sign_in(client(site), people_of["ann"]).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie
    assert people_of["ann"].lower() not in cookie


@pytest.mark.parametrize("how", ["the proxy says so", "--url says so"])
def test_behind_tls_the_cookie_and_the_host_are_for_tls_only(tmp_path, data, people_of, how):
    site_access = Access(url="https://testserver") if how == "--url says so" else Access()
    site = build_app(review_set.read(tmp_path), data, ["testserver"], site_access)
    base = "http://testserver" if site_access.url else "https://testserver"
    session = TestClient(site, base_url=base)
    signed_in = sign_in(session, people_of["ann"])
    assert "; secure" in signed_in.headers["set-cookie"].lower()
    assert signed_in.headers["strict-transport-security"] == "max-age=31536000"


def test_without_tls_nothing_is_said_of_it(ann):
    assert "strict-transport-security" not in ann.get("/").headers


def test_tokens_and_sessions_are_not_stored(site, data, people_of, tmp_path):
    sessions = [client(site, token).cookies[access.COOKIE] for token in people_of.values()]
    with closing(sqlite3.connect(tmp_path / "review.sqlite")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("review.sqlite*"))
    assert len(stored) > 1000
    for word in (*people_of.values(), *sessions):
        assert word.encode() not in stored


def test_a_session_is_not_taken_from_the_attacker(site, people_of):
    """Session fixation: a cookie that was there before is not the one after signing in."""
    victim = client(site, cookie=f"{access.COOKIE}=planted")
    planted = sign_in(victim, people_of["ann"]).cookies[access.COOKIE]
    assert planted != "planted"
    assert client(site, cookie=f"{access.COOKIE}=planted").get("/").status_code == 401


def test_nobody_is_signed_in_by_another_site(site, people_of):
    stranger = client(site)
    body = json.dumps({"token": people_of["ann"]})
    kinds = [
        {"origin": "https://elsewhere.example", "content-type": "application/json"},
        {"content-type": "text/plain"},
    ]
    for headers in kinds:
        assert stranger.post("/sign-in", content=body, headers=headers).status_code in (403, 415)
    assert not stranger.cookies


def test_after_signing_out_the_cookie_opens_nothing(site, ann):
    word = ann.cookies[access.COOKIE]
    assert ann.post("/sign-out", json={}, headers={"x-csrf-token": ""}).status_code == 403
    assert ann.post("/sign-out", json={}).status_code == 200
    assert access.COOKIE not in ann.cookies
    assert client(site, cookie=f"{access.COOKIE}={word}").get("/").status_code == 401


def test_signing_in_again_ends_the_session_before(site, ann, people_of):
    before = ann.cookies[access.COOKIE]
    sign_in(ann, people_of["ben"])
    assert client(site, cookie=f"{access.COOKIE}={before}").get("/").status_code == 401
    assert ann.get("/").status_code == 200


def age(data, **seconds):
    """Makes every session older: `made_at`, `seen_at`."""
    with data.writing() as c:
        for name, by in seconds.items():
            column = database.sessions.c[name]
            c.execute(database.sessions.update().values({name: column - by}))


def test_a_session_that_is_not_used_expires(ann, data):
    idle, whole = Lifetime().idle, Lifetime().whole
    age(data, seen_at=idle - 60)
    assert ann.get("/").status_code == 200  # and is in use again
    age(data, seen_at=idle - 60)
    assert ann.get("/").status_code == 200
    age(data, seen_at=idle + 60)
    assert ann.get("/").status_code == 401
    assert idle < whole


def test_a_session_continues_while_nothing_can_be_written(
    monkeypatch, set_and_links, tmp_path, people_of
):
    monkeypatch.setattr(database, "WAIT", 0.05)
    root = shutil.copytree(set_and_links[0], tmp_path / "own")
    data = database.connect(database.default_url(root))
    ann = client(build_app(review_set.read(root), data, ["testserver"]), people_of["ann"])
    age(data, seen_at=Lifetime().idle - 60)
    with closing(sqlite3.connect(root / "review.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert ann.post("/sign-out", json={}).status_code == 503
        assert ann.get("/index.json").status_code == 200


def test_a_session_expires_though_it_is_used(site, ann, data, people_of):
    age(data, made_at=Lifetime().whole - 60)
    assert ann.get("/").status_code == 200
    age(data, made_at=60)
    assert ann.get("/").status_code == 401
    client(site, people_of["ben"])
    with data.reading() as c:
        assert c.execute(text("select count(*) from sessions")).scalar() == 1


def test_a_revoked_person_is_out_everywhere_until_there_is_a_new_link(site, ann, ben, people_of):
    admin = client(site, people_of["admin"])
    phone = client(site, people_of["ann"])
    number = next(
        person["id"]
        for person in admin.get("/dashboard.json").json()["reviewers"]
        if person["name"] == "ann"
    )
    assert ben.post(f"/reviewers/{number}/revoke", json={}).status_code == 403
    assert admin.post(f"/reviewers/{number}/revoke", json={}).status_code == 200
    for session in (ann, phone):
        assert session.get("/").status_code == 401
    assert sign_in(client(site), people_of["ann"]).status_code == 401
    assert ben.get("/").status_code == 200
    link = admin.post(f"/reviewers/{number}/link", json={}).json()["link"]
    assert sign_in(client(site), link.partition("/r#")[2]).status_code == 200
    # the admin is not locked out by a slip of the hand
    assert admin.post("/reviewers/1/revoke", json={}).status_code == 422
    assert admin.post("/reviewers/1/pause", json={"why": "by the admin"}).status_code == 422


def test_an_item_assigned_to_another_reviewer_cannot_be_answered(ann, ben):
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
    assert link.startswith("http://testserver/r#")
    assert sign_in(client(site), link.partition("/r#")[2]).status_code == 200


def test_a_name_that_could_be_taken_for_another_is_refused(site, people_of):
    admin = client(site, people_of["admin"])
    head = {"content-type": "application/json"}
    for name in (
        *("admin", "Admin", "\uff21dmin", "bulk, after an audit"),  # reserved, also full-width
        *("", " ", "x" * 81, "a\nb", "an\u200bn", "a\u202en", "\ud800", "\ue000"),
        *("ann", " ANN ", "\u24d0nn", "\U0001d400nn"),  # as another's, also in circles, bold
    ):
        body = json.dumps({"name": name})
        assert admin.post("/reviewers", content=body, headers=head).status_code == 422, body
    assert len(admin.get("/dashboard.json").json()["reviewers"]) == 2


def test_an_unknown_reviewer_id_is_404(site, people_of):
    admin = client(site, people_of["admin"])
    for number in (99, 0, -1, 1 << 31, 10**30):
        for change in ("pause", "link", "revoke"):
            path = f"/reviewers/{number}/{change}"
            assert admin.post(path, json={"why": ""}).status_code == 404, path


def test_an_unknown_decision_id_is_404(ann):
    for number in (99, 0, -1, 1 << 31, 1 << 63, 10**30):
        assert ann.post(f"/decisions/{number}/undo", json={"key": KEY}).status_code == 404, number


def test_an_unknown_path_is_404_and_a_wrong_method_405(ann):
    for path in ("/nowhere", "/stages/nothing", "/r/token"):
        assert ann.get(path).status_code == 404
    for path in ("/reviewers", "/sign-in", "/sign-out"):
        assert ann.get(path).status_code == 405
    assert ann.delete("/").status_code == 405


def test_a_forged_request_is_refused(ann):
    item = served(ann)
    for headers in (
        {"x-csrf-token": ""},
        {"x-csrf-token": "0" * 64},
        {"origin": "https://elsewhere.example"},
        {"content-type": "text/plain"},
    ):
        sent = {"content-type": "application/json", **headers}
        refused = ann.post("/decisions", content=json.dumps(answer(item)), headers=sent)
        assert refused.status_code in (403, 415), headers
    assert ann.post("/decisions", json=answer(item)).status_code == 200


def test_another_host_name_is_refused(ann):
    assert ann.get("/index.json", headers={"host": "rebound.example"}).status_code == 400


def test_only_files_of_the_set_are_served(ann):
    for path in (
        "/images/../set.json",
        "/images/%2e%2e%2freview.sqlite",
        "/images/..%2f..%2fetc%2fpasswd",
        "/static/../app.py",
        "/static/%2e%2e/database.py",
        f"/images/{'0' * 64}.jpg",
    ):
        assert ann.get(path).status_code == 404, path


def test_an_image_of_the_set_is_served_and_its_neighbour_on_disk_is_not(ann, tmp_path):
    name = served(ann)["payload"]["image"]
    assert ann.get(f"/images/{name}").content == review_set.image_path(tmp_path, name).read_bytes()
    other = review_set.image_path(tmp_path, "f" * 64 + ".jpg")
    other.parent.mkdir(exist_ok=True)
    other.write_bytes(b"not of the set")
    assert ann.get(f"/images/{other.name}").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("link", ["file", "folder"])
def test_a_picture_that_is_a_link_out_of_the_set_is_not_served(ann, tmp_path, link):
    name = served(ann)["payload"]["image"]
    path = review_set.image_path(tmp_path, name)
    target = tmp_path / "elsewhere"
    moved = path if link == "file" else path.parent
    moved.rename(target)
    moved.symlink_to(target)
    refused = ann.get(f"/images/{name}")
    assert (refused.status_code, refused.json()["detail"][:9]) == (404, "the image")


def test_a_set_that_is_reached_by_a_link_is_served(tmp_path, data, people_of):
    root = tmp_path / "link to the set"
    root.symlink_to(tmp_path)
    ann = client(build_app(review_set.read(root), data, ["testserver"]), people_of["ann"])
    assert ann.get(f"/images/{served(ann)['payload']['image']}").status_code == 200


def test_strict_headers_on_every_answer(ann):
    for path in ("/", "/index.json", "/nowhere", "/static/review.css"):
        headers = ann.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
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
    first = served(ann)
    second = ann.post("/decisions", json=answer(first)).json()["next"][0]
    assert ann.post("/decisions", json=answer(second)).status_code == 409


def test_a_decision_that_makes_no_sense_is_refused(ann, data):
    item = served(ann)
    for change in (
        {"assignment": "1; DROP TABLE decisions"},
        {"answer": {"correct": "yes' --", "similar": "yes"}},
        {"answer": "yes"},
        {"seconds": -1},
        {"seconds": "NaN"},
        {"key": "short"},
        {"key": "x" * 65},
        {"replaces": [1]},
    ):
        assert ann.post("/decisions", json=answer(item) | change).status_code == 422, change
    with data.reading() as c:
        assert c.execute(text("select count(*) from decisions")).scalar() == 0


def test_sql_and_html_in_words_stay_words(ann, data, site, people_of):
    nasty = "'); DROP TABLE decisions; -- <img src=x onerror=alert(1)>"
    ann.post("/decisions", json=answer(served(ann), comment=nasty))
    admin = client(site, people_of["admin"])
    admin.post("/reviewers", json={"name": nasty})
    with data.reading() as c:
        assert c.execute(text("select comment from decisions")).scalar() == nasty
    assert nasty in [person["name"] for person in admin.get("/dashboard.json").json()["reviewers"]]
    assert "<img src=x" not in admin.get("/dashboard").text


def test_a_label_with_html_is_escaped_on_the_page(tmp_path, site, data, ann):
    item = served(ann)
    with data.writing() as c:
        nasty = {**item["payload"], "labels": ["<script>alert(1)</script>"]}
        c.execute(database.items.update().values(payload=nasty))
    assert "<script>alert(1)" not in ann.get("/stages/pairs").text


def test_a_lost_link_can_be_renewed_and_the_old_one_is_dead(site, data, people_of):
    session = client(site, people_of["ann"])
    with data.writing() as c:
        fresh = reviewers.renew_token(c, "ann")
    assert session.get("/index.json").status_code == 401
    assert sign_in(client(site), people_of["ann"]).status_code == 401
    assert client(site, fresh).get("/index.json").status_code == 200


def nothing(name, rows):
    return lambda done: None


@pytest.mark.slow
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
            read_frames([spec], tmp_path, nothing, [], 5),
            tmp_path / "set",
            Sampling("set", {}, None),
        )
    assert not (tmp_path / "set" / "set.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 2])
def test_a_decoder_that_is_killed_is_begun_once_more(kills, tmp_path):
    folder = tmp_path / "clip"
    folder.mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (900, 900, 3), np.uint8)
    for number in range(12):
        (folder / f"{number:02d}.png").write_bytes(image_file.encode(noise + number, ".png"))
    spec, began, killed = Spec("frames", {"path": str(folder), "anchors": 4, "k": 2}), [], []

    def begin(name, rows):
        began.append((name, rows))
        return kill

    def kill(done):
        # the first that decodes; where two are to be killed, each that does
        for process in multiprocessing.active_children():
            if len(killed) < kills and process.pid not in killed:
                process.kill()
                process.join()
                killed.append(process.pid)

    if kills == 1:
        whole = [frame.row for frame in read_frames([spec], tmp_path / "whole", nothing, [])]
        again = [frame.row for frame in read_frames([spec], tmp_path / "set", begin, [])]
        assert again == whole
        assert began == [("clip", len(whole))]
    else:
        words = (
            r"decodes frames\(.*\) ended twice, by signal 9, after \d+ frames?; if memory ran out"
        )
        with pytest.raises(UsageError, match=words):
            list(read_frames([spec], tmp_path / "set", begin, []))
    assert len(killed) == kills
    assert not list(tmp_path.rglob(".*.tmp"))


def test_a_message_that_is_cut_off_is_the_end_of_the_decoder():
    receiver, sender = multiprocessing.Pipe(duplex=False)
    sender.send(7)
    os.write(sender.fileno(), (1000).to_bytes(4, "big") + b"half of a frame")
    sender.close()
    messages = decoding_process._receive(Spec("frames", {}), receiver, 5)
    assert next(messages) == 7
    with pytest.raises(EOFError):
        next(messages)


class EndedError(Exception):
    """What ends a sampling in the middle."""


def test_a_sampling_that_ends_leaves_nothing_half_written(tmp_path):
    folder = tmp_path / "clip"
    folder.mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (1000, 1000, 3), np.uint8)
    for number in range(8):
        (folder / f"{number}.bmp").write_bytes(image_file.encode(noise + number, ".bmp"))
    stored, partial_files = tmp_path / "set" / "images", []

    def end(_):
        # the other process is held while it writes
        (process,) = multiprocessing.active_children()
        for _ in range(10_000):
            os.kill(process.pid, signal.SIGSTOP)
            partial_files.extend(stored.rglob(".*.tmp"))
            if partial_files:
                raise EndedError
            os.kill(process.pid, signal.SIGCONT)
            time.sleep(0.0005)

    spec = Spec("frames", {"path": str(folder), "k": 1, "anchors": "all"})
    with pytest.raises(EndedError):
        list(read_frames([spec], tmp_path / "set", lambda name, rows: end, []))
    assert not list(stored.rglob(".*.tmp"))


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
    with pytest.raises(SampleError, match=r"states 400,000,000 pixels, over 134,217,728"):
        image_file.decode(bomb, "bomb.png")
    small = bytearray(simplejpeg.encode_jpeg(np.zeros((64, 64, 3), np.uint8)))
    at = small.index(b"\xff\xc0") + 5
    small[at : at + 4] = struct.pack(">HH", 65_500, 65_500)
    with pytest.raises(SampleError, match=r"states 4,290,250,000 pixels"):
        image_file.decode(bytes(small), "bomb.jpg")


class Forked(review_load.Server):
    """The command in a fork of a process that has imported most of what it needs."""

    def begin(self):
        return forked.Command(*self.words)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR is not set")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(kind):
    job = review_load.Job(decisions=48, reviewers=6, think=0.05)
    # not in tmp_path: PostgreSQL runs as a user of its own, whom pytest's folders are closed to
    with tempfile.TemporaryDirectory() as folder:
        figures = review_load.measure_on(kind, Path(folder), job, Forked)
    assert figures["acknowledged"] >= job.decisions
    assert figures["sent_again"] > 0
    for name in ("lost", "unknown", "doubled", "served_twice"):
        assert figures[name] == 0, figures


ATTACKS = {
    "no link, an invented link, an invented session": [
        "test_a_visitor_without_a_link_sees_nothing",
        "test_every_page_wants_a_session_and_every_change_its_word",
        "test_a_made_up_link_opens_nothing",
    ],
    "guessing links": [
        "test_links_are_not_guessed_from_one_address",
        "test_links_are_not_guessed_from_many_addresses",
        "test_an_ipv6_network_is_one_guesser",
    ],
    "forging `X-Forwarded-For`": [
        "test_a_made_up_address_is_believed_without_a_proxy_by_nobody",
        "test_behind_nginx_people_are_distinguished_and_cookies_are_for_tls",
    ],
    "reading links from logs, history or the database": [
        "test_tokens_and_sessions_are_not_stored",
        "test_the_link_leaves_address_bar_and_history",
        "test_behind_nginx_people_are_distinguished_and_cookies_are_for_tls",
    ],
    "stealing the cookie by script": [
        "test_the_link_becomes_a_cookie_no_script_can_read",
        "test_strict_headers_on_every_answer",
    ],
    "a cookie set before signing in (session fixation)": [
        "test_a_session_is_not_taken_from_the_attacker"
    ],
    "using an old session": [
        "test_after_signing_out_the_cookie_opens_nothing",
        "test_signing_in_again_ends_the_session_before",
        "test_a_session_that_is_not_used_expires",
        "test_a_session_expires_though_it_is_used",
        "test_a_lost_link_can_be_renewed_and_the_old_one_is_dead",
        "test_a_revoked_person_is_out_everywhere_until_there_is_a_new_link",
    ],
    "requests forged by another site (CSRF)": ["test_a_forged_request_is_refused"],
    "signing somebody in from another site (login CSRF)": [
        "test_nobody_is_signed_in_by_another_site"
    ],
    "the page in a frame of another site (clickjacking)": ["test_strict_headers_on_every_answer"],
    "a host name that is rebound to this machine (DNS rebinding)": [
        "test_another_host_name_is_refused"
    ],
    "the pages of the admin": ["test_only_the_admin_sees_the_dashboard"],
    "a name like another's, `admin`, invisible letters": [
        "test_a_name_that_could_be_taken_for_another_is_refused"
    ],
    "answering an item of somebody else": [
        "test_an_item_assigned_to_another_reviewer_cannot_be_answered"
    ],
    "the same request twice, an old page": [
        "test_a_replayed_decision_adds_nothing_and_a_stale_one_is_refused",
        "test_one_key_is_not_for_two_decisions",
    ],
    "invalid answers, SQL or HTML in texts": [
        "test_a_decision_that_makes_no_sense_is_refused",
        "test_sql_and_html_in_words_stay_words",
        "test_a_label_with_html_is_escaped_on_the_page",
    ],
    "unknown ids, pages, pictures": [
        "test_an_unknown_reviewer_id_is_404",
        "test_an_unknown_decision_id_is_404",
        "test_an_unknown_path_is_404_and_a_wrong_method_405",
        "test_an_image_of_the_set_is_served_and_its_neighbour_on_disk_is_not",
    ],
    "files outside the set, by `..` or by links in its folder": [
        "test_only_files_of_the_set_are_served",
        "test_a_picture_that_is_a_link_out_of_the_set_is_not_served",
    ],
    "requests over 256 kB, also without a length": ["test_oversized_bodies_are_refused"],
    "headers and bodies sent byte by byte (Slowloris)": [
        "test_a_head_that_does_not_come_ends_the_connection",
        "test_a_head_that_drips_ends_the_connection",
        "test_a_body_that_does_not_come_is_408_and_ends_the_connection",
        "test_nginx_ends_what_is_slow_large_or_too_much",
    ],
    "many connections": [
        "test_more_connections_than_one_process_can_have_are_refused",
        "test_nginx_ends_what_is_slow_large_or_too_much",
    ],
    "plain HTTP where there is TLS": [
        "test_behind_tls_the_cookie_and_the_host_are_for_tls_only",
        "test_without_tls_nothing_is_said_of_it",
    ],
    "pictures and videos made to harm the decoder": [
        "test_a_file_that_hangs_the_decoder_is_given_up",
        "test_decompression_bombs_are_refused_before_they_are_decoded",
    ],
}
"""Attack, as the docs list it → the tests of its answer."""


def test_the_docs_list_the_attacks_that_are_tested():
    page = (BENCHMARKS.parent / "docs" / "how-to" / "review-server.md").read_text()
    rows = re.findall(r"^\| (.*?) \| .* \|$", page.partition("## Attacks")[2], re.MULTILINE)
    assert rows[1:] == list(ATTACKS)
    files = (Path(__file__), Path(__file__).parent / "web" / "test_review_server.py")
    tests = re.findall(r"^def (test_\w+)", "".join(map(Path.read_text, files)), re.MULTILINE)
    assert set(chain.from_iterable(ATTACKS.values())) <= set(tests)
