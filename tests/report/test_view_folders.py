"""The list of runs over folders of mined mistakes, and over folders of a store."""

import http.client
import itertools
import json
import shutil
import threading
from contextlib import contextmanager
from urllib.parse import quote

import gcs_server
import pytest
import s3_server
from forked import refused, steadyeye
from light_toys import dark, light, write_clip
from mined_toys import data as boxed_data
from mined_toys import models, written
from mined_toys import steadyeye as with_detectors
from page_checks import wait_drawn

import steadyeye as se
from steadyeye.core.storage.files import place
from steadyeye.report import build, compare, run_index
from steadyeye.report.render.run_list import describe_list
from steadyeye.report.run_index import RunIndex
from steadyeye.report.run_server import serving

numbers = itertools.count()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of classifiers with their reports, and what was mined of detectors, twice."""
    root = tmp_path_factory.mktemp("made")
    clip = write_clip(root)
    for model in (dark, light):
        folder = se.evaluate(model, clip, out=root / "runs" / model.__name__).folder
        build.write([folder], [folder / "report.html", folder / "results.json"])
    boxed = written(root)
    words = ("mine", *models("sure", "also"), "--data", boxed_data(boxed))
    code, output = with_detectors(boxed, *words, "--out", root / "runs" / "mined")
    assert code == 0, output
    again = root / "runs" / "again"
    code, output = with_detectors(boxed, "mine", root / "runs" / "mined", "--out", again)
    assert code == 0, output
    return root / "runs"


@pytest.fixture
def own(runs, tmp_path):
    return shutil.copytree(runs, tmp_path / "runs")


def read_runs(root):
    return {run.path: run for run in RunIndex(root).runs()}


@contextmanager
def served(root):
    """What asks a server of the runs below `root`: path → status and content."""
    with serving(root, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()

        def ask(path):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()

        yield server, ask
        server.shutdown()
        thread.join()


# ---- mined mistakes


def test_mined_mistakes_are_listed_with_their_number(own):
    listing = read_runs(own)
    assert set(listing) == {"again", "dark", "light", "mined"}
    count = len(json.loads((own / "mined" / "candidates.json").read_text())["annotations"])
    for name in ("mined", "again"):
        run = listing[name]
        assert (run.kind, run.state, run.report) == ("mining", "finished", True)
        assert (run.models, run.data) == (("sure", "also"), ("truth",))
        assert run.reason == f"{count} confident mistakes"
    rows = {row["path"]: row for row in describe_list(tuple(listing.values()), "runs")["runs"]}
    assert {name for name, row in rows.items() if row["comparable"]} == {"dark", "light"}


def test_mined_mistakes_without_a_report_or_damaged_are_a_line(own):
    (own / "mined" / "report.html").unlink()
    content = (own / "again" / "candidates.json").read_text()
    (own / "again" / "candidates.json").write_text(content[: len(content) // 2])
    listing = read_runs(own)
    assert (listing["mined"].state, listing["again"].state) == ("unfinished", "damaged")
    assert listing["again"].reason == "candidates.json is damaged; run `steadyeye mine` again"
    with served(own) as (_, ask):
        status, content = ask("/report?run=mined")
    assert status == 409
    assert b"the mining writes it when it is done" in content
    assert "run `steadyeye mine` again" in refused("view", own / "mined", "--no-open")


def test_the_report_of_mined_mistakes_opens_in_a_browser(own, windows):
    with served(own) as (server, _):
        page = windows.open(server.url).page
        wait_drawn(page)
        page.get_by_label("Kind").select_option("mining")
        assert sorted(page.locator("tbody th a").all_text_contents()) == ["again", "mined"]
        page.get_by_role("link", name="mined").click()
        page.wait_for_url("**/report?run=mined")
        assert "Confident mistakes" in page.title()
    done = steadyeye("view", own / "again", "--no-open")
    assert done.stdout.strip() == f"report: {own / 'again' / 'report.html'}"


def test_an_explanation_is_called_one(own):
    record = json.loads((own / "dark" / "run.json").read_text())
    plain = {key: value for key, value in record.items() if key not in ("format", "checksum")}
    (own / "dark" / "run.json").write_text(json.dumps({**plain, "explain": {"settings": {}}}))
    assert read_runs(own)["dark"].kind == "explanation"


# ---- stores


@pytest.fixture(scope="module")
def store(request):
    """A running store: a function of a name that makes a bucket and gives its address."""
    kind = {"s3": s3_server, "gs": gcs_server}[getattr(request, "param", "s3")]
    with kind.server() as url:
        yield lambda name: kind.bucket(url, name)


@pytest.fixture
def bucket(store):
    return store(f"runs-of-a-team-{next(numbers)}")


@pytest.fixture
def stored(runs, bucket):
    """The folder of a store with copies of all runs."""
    root = place(f"{bucket}/team/runs")
    for file in sorted(path for path in runs.rglob("*") if path.is_file()):
        (root / file.relative_to(runs).as_posix()).write_bytes(file.read_bytes())
    return root


@pytest.mark.parametrize("store", ["s3", "gs"], indirect=True)
def test_runs_of_a_store_are_listed_as_those_of_a_disk(stored, runs, monkeypatch):
    local, remote = read_runs(runs), read_runs(stored)
    assert set(remote) == set(local)
    for path, run in local.items():
        other = remote[path]
        assert (other.kind, other.state, other.reason) == (run.kind, run.state, run.reason)
        assert (other.models, other.data, other.rows) == (run.models, run.data, run.rows)
        assert other.report
    assert remote["dark"].date == local["dark"].date
    assert read_runs(stored / "light")["."].state == "finished"

    read, describe = [], run_index.describe
    monkeypatch.setattr(
        run_index,
        "describe",
        lambda folder, path, files: (read.append(path), describe(folder, path, files))[1],
    )
    index = RunIndex(stored)
    index.runs()
    assert sorted(read) == ["again", "dark", "light", "mined"]
    (stored / "dark" / "run.json").write_bytes(b"{")
    cell = next(file for file in (stored / "light" / "cells").iterdir())
    (cell / "00000.arrow").unlink()
    states = {run.path: run.state for run in index.runs()}
    assert sorted(read[4:]) == ["dark", "light"]
    assert (states["dark"], states["light"], states["mined"]) == ("damaged", "damaged", "finished")


def test_reports_and_comparisons_of_a_store_are_served(stored, runs, tmp_path):
    (stored / "light" / "report.html").unlink()
    before = stored.versions()
    with served(stored) as (server, ask):
        assert str(stored) in ask("/")[1].decode()
        listing = json.loads(ask("/index.json")[1])
        assert [run["path"] for run in listing["runs"]] == ["again", "dark", "light", "mined"]
        for name in ("dark", "mined"):
            assert ask(f"/report?run={name}") == (200, (runs / name / "report.html").read_bytes())
        build.write([stored / "light"], [tmp_path / "report.html"])
        assert ask("/report?run=light") == (200, (tmp_path / "report.html").read_bytes())
        compare.write([stored / "dark", stored / "light"], [tmp_path / "compare.html"])
        compared = ask("/compare?run=dark&run=light")
        assert compared == (200, (tmp_path / "compare.html").read_bytes())
        for path in ("../runs/dark", "cells", ""):
            assert ask(f"/report?run={quote(path, safe='')}")[0] == 409
        assert server.index.root == stored
    assert stored.versions() == before


def test_a_store_is_named_on_the_command_line(stored, bucket):
    assert "is in a store; leave it out" in refused("view", stored, "--html", "list.html")
    assert f"no folder '{bucket}/nowhere'" in refused("view", f"{bucket}/nowhere")
