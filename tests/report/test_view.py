"""The list of runs: its entries, the file and the server, and its appearance."""

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
from urllib.parse import quote

import pytest
from forked import refused, steadyeye
from light_toys import dark, light, write_clip
from page_checks import (
    LOOKS,
    find_faults,
    find_print_faults,
    find_violations,
    reopen,
    wait_drawn,
)

import steadyeye as se
from steadyeye.predictions.json_record import write_record
from steadyeye.report import build, compare, run_index
from steadyeye.report.render.run_list import (
    ListedRun,
    Number,
    RunRow,
    describe_list,
    render_list,
)
from steadyeye.report.run_index import RunIndex
from steadyeye.report.run_server import serving

EVIL = "<img src=x onerror=document.title='hurt'>"
BARS = "a & b's"


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Two runs on one data set with their reports and numbers."""
    root = tmp_path_factory.mktemp("made")
    data = write_clip(root)
    for model in (dark, light):
        folder = se.evaluate(model, data, out=root / "runs" / model.__name__).folder
        build.write([folder], [folder / "report.html", folder / "results.json"])
    return root / "runs"


@pytest.fixture
def runs(originals, tmp_path):
    """A folder of one's own with copies of the two runs."""
    return shutil.copytree(originals, tmp_path / "runs")


def read_runs(root):
    return {run.path: run for run in RunIndex(root).runs()}


def cell(run):
    (folder,) = (run / "cells").iterdir()
    return folder


# ---- what the list says


def test_a_finished_run_with_the_numbers_it_stores(runs):
    run = read_runs(runs)["light"]
    stored = json.loads((runs / "light" / "results.json").read_text())["results"][0]
    assert (run.kind, run.state, run.reason, run.report) == ("evaluation", "finished", "", True)
    assert (run.models, run.data) == (("light",), ("clip",))
    (row,) = run.rows
    assert (row.model, row.data) == (stored["model"], stored["data"])
    with_value = {name: m for name, m in stored["metrics"].items() if m["value"] is not None}
    assert {n.metric: (n.value, n.low, n.high, n.n) for n in row.numbers} == {
        name: (m["value"], m["low"], m["high"], m["n"]) for name, m in with_value.items()
    }
    assert {"accuracy", "pm_k(k=2)"} <= set(with_value)


def test_an_unfinished_run_says_how_many_shards_there_are(runs):
    (cell(runs / "dark") / "seal.json").unlink()
    (cell(runs / "dark") / "00001.seal").unlink()
    assert (read_runs(runs)["dark"].state, read_runs(runs)["dark"].reason) == (
        "unfinished",
        "1 of 2 shards; run the same command again to finish it",
    )
    shutil.rmtree(runs / "dark" / "cells")
    reason = (
        "0 of 0 shards, 1 of 1 model × data not started; run the same command again to finish it"
    )
    assert read_runs(runs)["dark"].reason == reason


def test_a_detector_is_listed_by_its_map_and_not_as_a_classifier_alone():
    """Each of twenty runs has an mAP of 0 % and the right class in its most confident box."""
    names = ("accuracy", "drop", "pm_k(k=2)", "flip_rate", "map(iou=0.5)", "mar", "pm_k_map(k=2)")
    numbers = tuple(
        Number(name, 0.0 if "map" in name else 1.0, None, None, 9, "share") for name in names
    )
    run = ListedRun(
        "r", "evaluation", ("m",), ("d",), "finished", rows=(RunRow("m", "d", numbers),)
    )
    expected = ["map(iou=0.5)", "pm_k_map(k=2)", "accuracy", "pm_k(k=2)"]
    assert describe_list([run] * 20, "runs")["columns"] == expected


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "3",
        '{"job": 3, "provenance": {}}',
        '{"job": {}, "provenance": {}, "cells": 3}',
        '{"job": {"models": null, "data": null}, "provenance": {}, "cells": ["x"], "rounds": []}',
        '{"kind": "finetune", "job": {}, "provenance": {}}',
        '{"format": 2, "job": {}, "cells": [], "provenance": {}, "checksum": "0"}',
        "[" * 100_000,
    ],
)
def test_a_damaged_run_is_a_line_and_hides_no_other(runs, content):
    (runs / "dark" / "run.json").write_text(content)
    listing = read_runs(runs)
    assert listing["dark"].state == "damaged"
    assert listing["dark"].reason
    assert "\n" not in listing["dark"].reason
    assert listing["light"].state == "finished"
    assert "damaged" in render_list(tuple(listing.values()), "runs")


def test_a_lost_shard_and_damaged_numbers(runs):
    (cell(runs / "dark") / "00000.arrow").unlink()
    (runs / "light" / "results.json").write_text('{"results": [{}]}')
    listing = read_runs(runs)
    assert listing["dark"].state == "damaged"
    assert "00000.arrow' is missing" in listing["dark"].reason
    assert listing["dark"].models == ("dark",)
    assert (listing["light"].state, listing["light"].rows) == ("finished", ())
    assert listing["light"].reason.startswith("results.json is damaged")


def test_kinds_states_and_folders_within(runs, tmp_path):
    record = json.loads((runs / "dark" / "run.json").read_text())
    plain = {key: value for key, value in record.items() if key not in ("format", "checksum")}
    (runs / "dark" / "run.json").write_text(json.dumps(plain))
    training = runs / "deep" / "training"
    training.mkdir(parents=True)
    job = {"model": "timm(name='x')", "data": ["coco(…)"]}
    write_record(training / "run.json", {"kind": "finetune", "job": job, "provenance": {}})
    shutil.copytree(runs / "light", training / "then" / "base")
    shutil.copytree(runs / "light", training / "checkpoints" / "no")
    shutil.copytree(runs / "light", tmp_path / "outside")
    (runs / "link").symlink_to(tmp_path / "outside")
    listing = read_runs(runs)
    assert set(listing) == {"dark", "light", "deep/training", "deep/training/then/base"}
    assert listing["dark"].state == "older version"
    assert (listing["deep/training"].kind, listing["deep/training"].state) == (
        "training",
        "unfinished",
    )
    assert read_runs(runs / "light")["."].state == "finished"


def test_unchanged_runs_are_not_read_again(runs, monkeypatch):
    read, describe = [], run_index.describe
    index = RunIndex(runs)
    monkeypatch.setattr(
        run_index,
        "describe",
        lambda folder, path, files: (read.append(path), describe(folder, path, files))[1],
    )
    before = index.runs()
    assert read == ["dark", "light"]
    assert index.runs() == before
    assert read == ["dark", "light"]
    (cell(runs / "dark") / "00000.arrow").unlink()
    assert [run.state for run in index.runs()] == ["damaged", "finished"]
    assert read == ["dark", "light", "dark"]
    shutil.rmtree(runs / "dark")
    assert [run.path for run in index.runs()] == ["light"]


# ---- the file


def test_the_file_links_what_is_there_and_escapes_names(runs, tmp_path):
    shutil.move(runs / "dark", runs / BARS)
    (runs / EVIL).mkdir()
    shutil.copy(runs / "light" / "run.json", runs / EVIL)
    page = tmp_path / "pages" / "index.html"
    done = steadyeye("view", runs, "--html", page, "--no-open")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"3 runs: {page}"
    text = page.read_text()
    assert EVIL not in text
    assert "http:" not in text
    assert "https:" not in text
    content = json.loads(text.partition('id="content">')[2].partition("</script>")[0])
    index = RunIndex(runs).runs()
    assert content == json.loads(json.dumps(describe_list(index, str(runs), "../runs")))
    links = {run["path"]: run["link"] for run in content["runs"]}
    assert links[BARS] == f"../runs/{quote(BARS)}/report.html"
    assert links[EVIL] is None
    assert (page.parent / "../runs/light/report.html").is_file()


# ---- the server


@pytest.fixture
def server(runs):
    with serving(runs, 0) as http_server:
        thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield http_server
        http_server.shutdown()
        thread.join()


def ask(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


def snapshot(root):
    return {path: path.stat().st_mtime_ns for path in root.rglob("*")}


def test_the_server_makes_what_is_not_there_and_writes_nothing(server, runs, tmp_path):
    (runs / "light" / "report.html").unlink()
    before = snapshot(runs)
    assert ask(server, "/report?run=dark")[1] == (runs / "dark" / "report.html").read_bytes()
    build.write([runs / "light"], [tmp_path / "report.html"])
    status, content, _ = ask(server, "/report?run=light")
    assert (status, content) == (200, (tmp_path / "report.html").read_bytes())
    compare.write([runs / "dark", runs / "light"], [tmp_path / "compare.html"])
    status, content, _ = ask(server, "/compare?run=dark&run=light")
    assert (status, content) == (200, (tmp_path / "compare.html").read_bytes())
    status, content, headers = ask(server, "/index.json")
    assert [run["path"] for run in json.loads(content)["runs"]] == ["dark", "light"]
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert snapshot(runs) == before


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8420", "127.0.0.1", "", "[::1]"])
def test_foreign_names_get_no_answer(server, host):
    status, content, _ = ask(server, "/", Host=host)
    assert status == 403
    assert b"dark" not in content
    own = f"localhost:{server.server_port}"
    assert ask(server, "/", Host=own)[0] == 200
    assert ask(server, "/report?run=dark", Host=own, **{"Sec-Fetch-Site": "cross-site"})[0] == 403


@pytest.mark.parametrize(
    "path", ["../outside", "dark/../../outside", "/etc", "link", "", ".", "dark/", "dark\0", "%2e"]
)
def test_only_listed_runs_are_served(server, runs, tmp_path, path):
    shutil.copytree(runs / "light", tmp_path / "outside")
    (runs / "link").symlink_to(tmp_path / "outside")
    for page in ("/report?run=", "/compare?run=dark&run="):
        status, content, _ = ask(server, page + quote(path, safe=""))
        assert status == 409
        assert b"there is no run" in content or not path
    assert ask(server, f"/{quote(path)}/run.json")[0] == 404
    assert ask(server, "/../../../../etc/passwd")[0] == 404


def test_a_report_that_is_a_link_out_of_the_folder_is_not_served(server, runs, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (runs / "dark" / "report.html").unlink()
    (runs / "dark" / "report.html").symlink_to(tmp_path / "secret")
    status, content, _ = ask(server, "/report?run=dark")
    assert status == 409
    assert b"secret" not in content


def test_a_run_that_cannot_be_opened_is_answered_with_one_line(server, runs):
    (runs / "light" / "report.html").unlink()
    (cell(runs / "light") / "00000.arrow").write_bytes(b"no arrow")
    status, content, _ = ask(server, "/report?run=light")
    assert status == 409
    assert b"00000.arrow" in content
    assert b"Traceback" not in content
    assert ask(server, "/compare?run=dark")[0] == 409
    assert ask(server, "/", method="HEAD")[:2] == (200, b"")
    assert ask(server, "/", method="POST")[0] == 501
    assert ask(server, "/")[0] == 200


# ---- in a browser


def texts(page, selector):
    return page.locator(selector).all_text_contents()


def test_sort_filter_select_and_compare(server, runs, windows):
    (runs / EVIL).mkdir()
    shutil.copy(runs / "light" / "run.json", runs / EVIL)
    window = windows.open(server.url)
    page = window.page
    wait_drawn(page)
    assert page.title() != "hurt"
    assert page.locator("tbody tr").count() == 3
    page.get_by_role("button", name="pm_k(k=2)", exact=True).click()
    assert texts(page, "tbody th a")[0] == "dark"
    page.keyboard.press("Enter")  # the button that was pressed keeps the focus
    assert texts(page, "tbody th a")[0] == "light"
    assert page.locator("th[aria-sort=ascending]").inner_text() == "pm_k(k=2) ↑"
    # what has no value is last whichever way is up
    assert "onerror" in texts(page, "tbody th")[-1]
    page.get_by_label("Search").fill("DARK clip")
    assert texts(page, "tbody th a") == ["dark"]
    assert page.get_by_role("status").inner_text() == "1 of 3 runs"
    page.get_by_label("Search").fill("")
    page.get_by_label("Number").select_option("flip_rate")
    assert page.locator("thead .n").all_inner_texts() == ["flip_rate"]
    assert page.locator("tbody tr").count() == 2
    compare = page.locator("#compare")
    for name in ("dark", "light"):
        assert compare.is_disabled()
        page.get_by_label(f"Select {name}").press("Space")
    compare.click()
    page.wait_for_url("**/compare?**")
    assert page.locator("h1").count() == 1
    assert "dark" in page.inner_text("main")
    page.go_back()
    assert page.locator("tbody input:checked").count() == 2
    page.get_by_role("link", name="dark").click()
    page.wait_for_url("**/report?run=dark")
    assert window.complaints == []


def test_the_list_is_whole_and_accessible(runs, tmp_path, windows):
    shutil.copytree(runs / "dark", runs / ("a-very-long-name-without-any-space-" * 4))
    (runs / "light" / "run.json").write_text("{")
    page = tmp_path / "index.html"
    page.write_text(render_list(RunIndex(runs).runs(), "runs", "runs"))
    window = windows.open(page.as_uri(), bypass_csp=True, motion="reduce")
    for look in LOOKS:
        reopen(window, look)
        assert window.page.locator("tbody tr").count() == 3
        assert find_faults(window) == []
        assert find_violations(window.page) == []
        assert find_print_faults(window) == []


# ---- the command


def test_a_single_run_opens_its_report(runs):
    (runs / "dark" / "report.html").unlink()
    done = steadyeye("view", runs / "dark", "--no-open")
    assert done.stdout.strip() == f"report: {runs / 'dark' / 'report.html'}"
    assert "<h2>" in (runs / "dark" / "report.html").read_text()


def test_mistakes_are_one_line(runs, tmp_path):
    assert "no folder" in refused("view", tmp_path / "nowhere")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "choose another --port" in refused("view", runs, "--no-open", "--port", port)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no interrupt to one process")
def test_an_interrupt_ends_it_cleanly(runs):
    words = [sys.executable, "-m", "steadyeye", "view", str(runs), "--no-open", "--port", "0"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=120)
    assert (process.returncode, complaints) == (0, "")
