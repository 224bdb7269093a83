"""Serving a review: lasting links, ports, addresses, timeouts, and nginx before it."""

import os
import re
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from http.client import HTTPConnection

import forked
import httpx2 as httpx
import pytest
import uvicorn
from conftest import ROOT
from page_checks import open_link

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.review import database
from steadyeye.review.protocol import reviewers
from steadyeye.review.web import access, guard, server
from steadyeye.review.web.access import MOST_OF_ADDRESS, Access
from steadyeye.review.web.app import build_app

sys.path.insert(0, str(ROOT / "benchmarks"))
import review_load

NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
PATIENCE = 60


@pytest.fixture(scope="module")
def plain_set(tmp_path_factory):
    root = tmp_path_factory.mktemp("made") / "set"
    review_load.make_set(root, 20)
    return root


@pytest.fixture
def root(plain_set, tmp_path):
    return shutil.copytree(plain_set, tmp_path / "set")


# ---- the command


@contextmanager
def serve(root, *words):
    """What `steadyeye review` prints on its two streams, and the process, while it serves."""
    process = forked.Command("review", root, *words)
    try:
        yield wait_printed(process, r"^reviewing .*\n"), process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def wait_printed(process, pattern):
    """All that was printed, once a pattern was."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        texts = [os.pread(file.fileno(), 1 << 20, 0).decode() for file in process.files]
        if re.search(pattern, "".join(texts), re.MULTILINE):
            return "".join(texts)
        assert process.poll() is None, texts
        time.sleep(0.02)
    raise AssertionError(texts)


def read_links(printed):
    return dict(re.findall(r"^(\S+): (http\S+)$", printed, re.MULTILINE))


def token_of(link):
    return link.partition("/r#")[2]


@pytest.mark.slow
def test_the_same_command_continues_with_the_same_people_and_links(root):
    words = ("--port", "0", "--reviewer", "Ann", "--reviewer", "Bob")
    with serve(root, *words) as (printed, _):
        first = read_links(printed)
    assert list(first) == ["admin", "Ann", "Bob"]
    assert re.search(r"reviewing load at http://127.0.0.1:[1-9]\d*;", printed)
    with serve(root, *words) as (printed, _):
        again = read_links(printed)
        assert [*map(token_of, again.values())] == [*map(token_of, first.values())]
        site, _, token = again["Ann"].partition("/r#")
        assert httpx.post(f"{site}/sign-in", json={"token": token}).json()["name"] == "Ann"
    with serve(root, "--port", "0", "--renew", "Ann", "--revoke", "Bob") as (printed, _):
        renewed = read_links(printed)
    assert "Bob: has no link; make a new one with --renew Bob\n" in printed
    assert token_of(renewed["Ann"]) != token_of(first["Ann"])
    # nobody is named: everybody is shown
    with serve(root, "--port", "0") as (printed, _):
        last = read_links(printed)
    assert {name: token_of(link) for name, link in last.items()} == {
        name: token_of(link) for name, link in renewed.items()
    }


def test_a_port_that_is_taken_changes_nothing(root):
    before = sorted(root.rglob("*"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = forked.steadyeye("review", root, "--port", port, "--reviewer", "Ann")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"steadyeye: cannot listen at 127.0.0.1:{port}: port {port} is taken, perhaps by a review "
        "that runs already; stop that, or choose another --port (0: one that is free)\n"
    )
    assert sorted(root.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--host", "203.0.113.9"), r"'203.0.113.9' is no address of this machine; it has \S+"),
        (("--host", "no.such.host.invalid"), "has no address; give one of this machine's"),
        (("--url", "review.example.org"), "is no address; write it as https://"),
        (("--url", "https://example.org/review"), "has a path; a review needs a host name"),
        (("--port", "70000"), "--port 70000: give a whole number from 0 to 65,535"),
        (("--reviewer", "Admin"), "the name 'Admin' is reserved"),
        (("--renew", "bulk, after an audit"), "; --reviewer adds one"),
    ],
)
def test_a_set_or_address_that_cannot_be_served_is_refused_in_one_line(root, words, message):
    port = () if "--port" in words else ("--port", "0")
    done = forked.steadyeye("review", root, *port, *words)
    assert done.returncode == 2
    assert re.search(message, done.stderr)
    assert done.stderr.count("\n") == 1


def test_on_all_addresses_the_links_work_on_the_network(root):
    own = server.list_own_addresses("0.0.0.0")
    with serve(root, "--host", "0.0.0.0", "--port", "0") as (printed, process):
        site, _, token = read_links(printed)["admin"].partition("/r#")
        assert site.startswith(f"http://{own[0]}:")
        assert httpx.post(f"{site}/sign-in", json={"token": token}).status_code == 200
        for other in re.findall(r"http://\S+(?=,|$)", printed.partition("the same links")[2]):
            assert httpx.get(f"{other}/r").status_code == 200
        rebound = httpx.get(f"{site}/r", headers={"host": "rebound.example"})
        assert rebound.status_code == 400
        if not server.is_loopback(own[0]):
            assert "warning: plain HTTP" in wait_printed(process, "^warning")


# ---- keys of links


def test_the_key_of_links_is_for_its_owner_alone(tmp_path):
    key = reviewers.read_key(tmp_path)
    path = tmp_path / reviewers.KEY_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    assert reviewers.read_key(tmp_path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*tmp_path.iterdir()] == [path]
    path.write_text("spoilt")
    with pytest.raises(UsageError, match="holds no key of links; put it back, or delete it"):
        reviewers.read_key(tmp_path)


def test_a_link_made_with_another_key_works_and_cannot_be_shown(tmp_path):
    with database.connect(database.default_url(tmp_path)).writing() as c:
        token = reviewers.add_reviewer(c, "ann", key=b"1" * 32)
        assert reviewers.find_token(c, "ann", b"1" * 32) == token
        assert reviewers.find_token(c, "ann", b"2" * 32) is None
        assert reviewers.find_by_token(c, token).name == "ann"


# ---- listening


def test_addresses_of_ipv6_stand_in_brackets():
    assert server.bracket("fd00::2") == "[fd00::2]"
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    listener = server.listen("::1", 0)
    try:
        assert listener.urls == [f"http://[::1]:{listener.port}"]
        assert not listener.public
    finally:
        close(listener)


def test_a_name_listens_on_all_its_addresses():
    listener = server.listen("localhost", 0)
    try:
        ports = {endpoint.getsockname()[1] for endpoint in listener.sockets}
        assert ports == {listener.port}
        assert listener.urls == [f"http://localhost:{listener.port}"]
        assert not listener.public
    finally:
        close(listener)


def close(listener):
    for endpoint in listener.sockets:
        endpoint.close()


# ---- patience


@contextmanager
def running(root, site_access=None, *, proxy=False):
    """The base of a server of this process over a set, and the token of its reviewer."""
    listener = server.listen("127.0.0.1", 0)
    data = database.connect(database.default_url(root))
    with data.writing() as c:
        token = reviewers.add_reviewer(c, "ann")
    hosts = [*listener.trusted_hosts, "review.example.org"]
    app = build_app(review_set.read(root), data, hosts, site_access)
    web = uvicorn.Server(server.configure(app, proxy=proxy))
    thread = threading.Thread(target=web.run, kwargs={"sockets": listener.sockets})
    thread.start()
    try:
        yield listener.port, token
    finally:
        web.should_exit = True
        thread.join()


def read_to_end(connection):
    """All that comes until the other side closes the connection."""
    connection.settimeout(PATIENCE)
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: 127"])
def test_a_head_that_does_not_come_ends_the_connection(root, monkeypatch, sent):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    with running(root) as (port, _), socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(sent)
        assert read_to_end(slow) == b""


def test_a_second_head_that_does_not_come_ends_the_connection(root, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 1.0)
    monkeypatch.setattr(server, "IDLE_SECONDS", 1000)
    with running(root) as (port, _), closing(HTTPConnection("127.0.0.1", port)) as client:
        client.request("GET", "/r")
        assert client.getresponse().read()
        client.sock.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        assert read_to_end(client.sock) == b""


def drip(connection):
    """Sends a line of a head every 20 ms, as long as the other side takes it."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        connection.sendall(b"X-A: b\r\n")
        time.sleep(0.02)


def test_a_head_that_drips_ends_the_connection(root, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    with running(root) as (port, _), socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            drip(slow)


@pytest.mark.slow
def test_a_connection_that_is_used_continues(root, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 1.0)
    with running(root) as (port, _), closing(HTTPConnection("127.0.0.1", port)) as client:
        for _ in range(3):
            # fails where the connection was closed meanwhile
            client.request("GET", "/r")
            assert client.getresponse().read()
            time.sleep(0.5)


def test_a_body_that_does_not_come_is_408_and_ends_the_connection(root, monkeypatch):
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.2)
    head = (
        b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
    )
    with running(root) as (port, _), socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(head)
        assert read_to_end(slow).startswith(b"HTTP/1.1 408")


def test_more_connections_than_one_process_can_have_are_refused(root, monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    with running(root) as (port, _):
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        assert httpx.get(f"http://127.0.0.1:{port}/r").status_code == 503
        for connection in idle:
            connection.close()


@pytest.mark.slow
def test_a_made_up_address_is_believed_without_a_proxy_by_nobody(root):
    with running(root) as (port, token):
        url = f"http://127.0.0.1:{port}/sign-in"
        for number in range(MOST_OF_ADDRESS):
            headers = {"x-forwarded-for": f"10.0.0.{number}", "x-forwarded-proto": "https"}
            wrong = httpx.post(url, json={"token": "wrong"}, headers=headers)
            assert wrong.status_code == 401
            assert "strict-transport-security" not in wrong.headers
        headers = {"x-forwarded-for": "10.9.9.9"}
        assert httpx.post(url, json={"token": token}, headers=headers).status_code == 429


# ---- in a browser


def test_the_link_leaves_address_bar_and_history(root, windows):
    with running(root) as (port, token):
        base = f"http://127.0.0.1:{port}"
        window = windows.open(f"{base}/static/icon.svg")
        page = window.page
        urls = []
        page.on("request", lambda request: urls.append(request.url))
        open_link(page, f"{base}/r#{token}")
        history = [page.url]
        while page.url != f"{base}/static/icon.svg":
            page.go_back()
            history.append(page.url)
        assert history == [f"{base}/", f"{base}/static/icon.svg"]
        # the browser itself has the # of the link only; nothing that was sent has it
        assert [url for url in urls if token in url.partition("#")[0]] == []
        page.goto(f"{base}/")
        page.get_by_role("button", name="Sign out").click()
        page.get_by_text("Open your private link first").wait_for()
        assert page.context.cookies() == []
        page.goto(f"{base}/r#wrong")
        page.get_by_text("Not signed in: this link is not valid").wait_for()
        assert page.url == f"{base}/r"
        page.goto(f"{base}/r")
        page.get_by_text("This link is incomplete").wait_for()
        window.complaints[:] = [text for text in window.complaints if "401" not in text]
        assert window.complaints == []


# ---- behind nginx, with the file of the docs


@contextmanager
def proxied(folder, port, **changes):
    """The port of an nginx before a server, set up as the docs say but for `changes`."""
    page = (ROOT / "docs" / "how-to" / "review-server.md").read_text()
    text = re.search(r"```nginx\n(.*?)```", page, re.DOTALL)[1]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = free.getsockname()[1]
    subject = ("-subj", "/CN=review.example.org", "-days", "1", "-nodes", "-newkey", "rsa:2048")
    files = ("-keyout", folder / "review.key", "-out", folder / "review.pem")
    subprocess.run(("openssl", "req", "-x509", *subject, *files), check=True, capture_output=True)
    replaced = {
        "listen 443 ssl": f"listen 127.0.0.1:{own} ssl",
        "/etc/ssl/": f"{folder}/",
        "127.0.0.1:8000": f"127.0.0.1:{port}",
        **changes,
    }
    for before, after in replaced.items():
        assert before in text
        text = text.replace(before, after)
    spare = "".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid; daemon off; error_log {folder}/error.log info; worker_processes 1;"
        f"{'user root;' if os.getuid() == 0 else ''} events {{}}\n"
        f"http {{ access_log {folder}/access.log; {spare}\n{text} }}"
    )
    words = (NGINX, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log")
    process = subprocess.Popen(words)
    try:
        wait_open(process, own)
        yield own
    finally:
        process.terminate()
        process.wait()


def wait_open(process, port):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        assert process.poll() is None
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("nginx does not answer")


def connect_tls(port):
    context = ssl._create_unverified_context()
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port)))


needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
PUBLIC = {"host": "review.example.org"}


@needs_nginx
def test_behind_nginx_people_are_distinguished_and_cookies_are_for_tls(root, tmp_path):
    site_access = Access(url="https://review.example.org")
    with running(root, site_access, proxy=True) as (port, token), proxied(tmp_path, port) as public:
        with httpx.Client(
            base_url=f"https://127.0.0.1:{public}", verify=False, headers=PUBLIC
        ) as client:
            entry = client.get("/r")
            assert entry.status_code == 200
            assert entry.headers["strict-transport-security"] == "max-age=31536000"
            # what a client says of its own address is replaced by nginx
            for number in range(MOST_OF_ADDRESS):
                headers = {"x-forwarded-for": f"10.0.0.{number}"}
                answer = client.post("/sign-in", json={"token": "wrong"}, headers=headers)
                assert answer.status_code == 401
            assert client.post("/sign-in", json={"token": token}).status_code == 429
        # another address, here as another proxy on this machine would pass it on
        other_answer = httpx.post(
            f"http://127.0.0.1:{port}/sign-in",
            json={"token": token},
            headers={**PUBLIC, "x-forwarded-for": "192.0.2.9"},
        )
        assert other_answer.status_code == 200
        assert "; secure" in other_answer.headers["set-cookie"].lower()
        session = {"cookie": f"{access.COOKIE}={other_answer.cookies[access.COOKIE]}", **PUBLIC}
        origin = {
            "origin": "https://review.example.org",
            "x-csrf-token": other_answer.json()["csrf"],
        }
        signed_out = httpx.post(
            f"https://127.0.0.1:{public}/sign-out",
            json={},
            headers={**session, **origin},
            verify=False,
        )
        assert signed_out.status_code == 200
    logged = (tmp_path / "access.log").read_text()
    assert "POST /sign-in" in logged
    assert token not in logged


@pytest.mark.slow
@needs_nginx
def test_nginx_ends_what_is_slow_large_or_too_much(root, tmp_path):
    changes = {"header_timeout 15s": "header_timeout 1s", "body_timeout   15s": "body_timeout 1s"}
    changes["limit_conn reviewers 40"] = "limit_conn reviewers 2"
    with running(root, proxy=True) as (port, _), proxied(tmp_path, port, **changes) as public:
        head = b"POST /sign-in HTTP/1.1\r\nHost: review.example.org\r\n"
        with connect_tls(public) as slow:
            slow.sendall(head)
            assert read_to_end(slow)[:12] in (b"", b"HTTP/1.1 408")
        with connect_tls(public) as slow:
            slow.sendall(head + b"Content-Length: 50\r\n\r\n{")
            assert read_to_end(slow)[:12] in (b"", b"HTTP/1.1 408")
        with connect_tls(public) as large:
            large.sendall(head + b"Content-Length: 1000000\r\n\r\n")
            assert large.recv(1 << 16).startswith(b"HTTP/1.1 413")
        waiting = [connect_tls(public) for _ in range(2)]
        for connection in waiting:
            connection.sendall(head + b"Content-Length: 50\r\n\r\n{")
        with connect_tls(public) as third:
            third.sendall(b"GET /r HTTP/1.1\r\nHost: review.example.org\r\n\r\n")
            assert third.recv(1 << 16).startswith(b"HTTP/1.1 503")
        for connection in waiting:
            connection.close()
