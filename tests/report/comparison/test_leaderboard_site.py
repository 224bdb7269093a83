"""A user's leaderboard: its numbers, its files, its page in a browser, and bad input."""

import csv
import html
import json
from dataclasses import replace
from operator import attrgetter
from xml.etree import ElementTree as ET

import cv2
import numpy as np
import page_checks
import pytest
from forked import refused, steadyeye
from scipy.stats import kendalltau

import steadyeye as se
from steadyeye.core.report_types import Topic
from steadyeye.core.stats.trials import Trials
from steadyeye.core.types import Result
from steadyeye.report import leaderboard_files, leaderboard_site
from steadyeye.report.comparison.leaderboards import RankedModel, leaderboard
from steadyeye.report.leaderboard_files import (
    build_card,
    build_document,
    describe_origin,
    name_files,
)
from steadyeye.report.leaderboard_site import build_site
from steadyeye.report.run_costs import read_costs
from steadyeye.runner.collect import tables

LIMITS = {"low <b>": 60, "middle": 110, "high": 150, "higher": 190}


def write_frames(root, name, seed, videos=8):
    """Videos of grey frames, all of them light by their label; the spec of their pm-sets."""
    rng = np.random.default_rng(seed)
    for video in range(videos):
        folder = root / name / f"v{video}"
        folder.mkdir(parents=True)
        for frame in range(9):
            grey = int(np.clip(rng.normal(170, 40), 0, 255))
            cv2.imwrite(str(folder / f"{frame:03d}.png"), np.full((12, 12, 3), grey, np.uint8))
    rows = "".join(f"v{video},light\n" for video in range(videos - 1)) + f"v{videos - 1},dark\n"
    (root / f"{name}.csv").write_text(f"video,labels\n{rows}")
    return f"frames(path='{root / name}', anchors=3, k=2, labels='{root / f'{name}.csv'}')"


def classifier(name, limit):
    """A model that calls light what is lighter than a limit."""

    def answer(images):
        light = images.reshape(len(images), -1).mean(axis=1) > limit
        return np.stack([~light, light], axis=1).astype(np.float32)

    answer.__name__ = answer.__qualname__ = name
    return answer


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Four models run on data `a`, three of them on `b`, one on `c`: the folders of the runs."""
    root = tmp_path_factory.mktemp("board")
    data = {name: write_frames(root, name, seed) for seed, name in enumerate("abc")}
    runs = []
    for place, (name, limit) in enumerate(LIMITS.items()):
        for source in "abc"[: 2 - (place == 3)]:
            runs.append(root / f"{place}{source}")
            se.evaluate(classifier(name, limit), data[source], out=runs[-1], cache="off")
    se.evaluate(classifier("alone", 100), data["c"], out=root / "alone", cache="off")
    return root, runs


@pytest.fixture(scope="module")
def site(folders):
    return build_site(folders[1])


@pytest.mark.slow
def test_models_and_data_sets_are_ranked(site):
    assert [boards.data for boards in site.rankings] == ["a", "b"]
    assert [len(models) for models in site.models] == [4, 3]
    assert set(site.names) == set(LIMITS)
    sections = {section.title: section for section in build_document(site).sections}
    matrix = sections["4 models on 2 data sets"].tables[0]
    assert matrix.header == ("model", "a, pm-2", "b, pm-2")
    cells = {row[0]: row[1:] for row in matrix.rows}
    assert cells["higher"][1] == "—"
    assert "rank" in cells["middle"][0]
    assert all(section.topic is Topic.COMPARED for section in sections.values())


@pytest.mark.slow
def test_the_first_table_has_the_best_model_first(folders):
    backwards = build_site(folders[1][::-1])
    ranked = [row.model for boards in backwards.rankings for row in boards.boards[0].standings]
    evaluated = build_document(backwards).evaluated
    assert [model.predictions.model for model in evaluated] == ranked
    assert ranked != [model.predictions.model for models in backwards.models for model in models]


def test_the_correlation_is_that_of_the_models_on_both(site):
    pair = next(pair for pair in site.correlations if pair.metric == "accuracy")
    assert set(pair.models) == set(LIMITS) - {"higher"}
    models = [{model.predictions.model: model.results for model in group} for group in site.models]
    lists = [[own[name]["accuracy"].value for name in pair.models] for own in models]
    assert pair.value == pytest.approx(kendalltau(*lists).statistic)
    assert pair.low <= pair.value <= pair.high


def test_the_own_line_is_of_all_models_of_a_data_set(site):
    assert [len(lines.own[0].distances) for lines in site.lines] == [4, 3]
    assert all(lines.published is None for lines in site.lines)
    assert "published models were measured at k = 10" in site.lines[0].left_out
    by_name = {m.predictions.model: m.results for m in site.models[0]}
    for item in site.lines[0].own[0].distances:
        assert item.pm_k == pytest.approx(by_name[item.model]["pm_k(k=2)"].value)
        assert item.accuracy == pytest.approx(by_name[item.model]["accuracy"].value)


def test_costs_are_what_the_logs_say(folders, site):
    assert len(site.costs) == 7
    run = folders[1][0]
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    (cell,) = [line for line in lines if line["event"] == "cell"]
    (cost,) = read_costs(tables([run]))
    assert cost.images == cell["rows"] - cell["hits"]
    assert cost.infer == cell["stages"]["infer"]
    assert cost.per_image == pytest.approx(1000 * cell["stages"]["infer"] / cost.images)
    assert cost.date == cell["time"]


def tell_times(board):
    """The section on costs: its text, and the model and data of each row."""
    section = build_document(board).sections
    (costs,) = [part for part in section if part.title == "Inference time of the models"]
    return costs.text[0], [row[:2] for row in costs.tables[0].rows]


def test_times_on_two_data_sets_of_one_name_are_distinguished(folders, tmp_path):
    runs = []
    for name in ("middle", "high"):
        for anchors in (2, 3):
            data = f"frames(path='{folders[0] / 'a'}', anchors={anchors}, k=2, "
            data += f"labels='{folders[0] / 'a.csv'}')"
            runs.append(tmp_path / f"{name}{anchors}")
            se.evaluate(classifier(name, LIMITS[name]), data, out=runs[-1], cache="off")
    text, rows = tell_times(build_site(runs))
    assert rows == [("middle", "a"), ("middle", "a #2"), ("high", "a"), ("high", "a #2")]
    assert "a time on record" not in text
    (runs[1] / "log.jsonl").unlink()
    text, rows = tell_times(build_site(runs))
    assert rows == [("middle", "a"), ("high", "a"), ("high", "a #2")]
    assert "1 of 4 results without a time on record" in text


def test_times_are_of_results_on_the_board_by_their_names_there(folders, tmp_path, monkeypatch):
    data = "frames(path='{0}/a', anchors=3, k=2, labels='{0}/a.csv')".format(folders[0])
    for run, name in (("first", "twice"), ("second", "twice"), ("once", "once")):
        se.evaluate(classifier(name, len(name) * 25), data, out=tmp_path / run, cache="off")
    runs = [tmp_path / run for run in ("first", "second", "once")]
    # a run of several data sets has times of data that no other model was run on
    other_cost = replace(read_costs(tables(runs))[2], data="elsewhere")
    monkeypatch.setattr(leaderboard_site, "read_costs", lambda r: [*read_costs(r), other_cost])
    text, rows = tell_times(build_site(runs))
    assert rows == [("twice (first)", "a"), ("twice (second)", "a"), ("once", "a")]
    assert "a time on record" not in text


def test_no_speed_is_made_up(folders, tmp_path):
    run = tmp_path / "run"
    run.symlink_to(folders[1][0])
    assert read_costs(tables([run]))
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("run.json", "cells"):
        (copy / name).symlink_to(folders[1][0] / name)
    assert read_costs(tables([copy])) == []
    (copy / "log.jsonl").write_text('{"event": "cell", "cell": "damaged\n[]\n')
    assert read_costs(tables([copy])) == []


def test_the_folder_from_the_command_line(folders, site, tmp_path):
    done = steadyeye("leaderboard", *map(str, folders[1]), "--out", "board", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "τ\u00a0=\u00a0" in done.stdout
    out = tmp_path / "board"
    names = {file.name for file in out.iterdir()}
    assert names == {"index.html", "results.json", "results.csv", "cards"}
    cards = {file.name for file in (out / "cards").iterdir()}
    assert cards == {f"{n}.{s}" for n in name_files(site).values() for s in ("svg", "html")}
    for file in (out / "cards").glob("*.svg"):
        assert ET.fromstring(file.read_text()).attrib["width"] == "800"
    page = (out / "index.html").read_text()
    assert 'href="cards/middle.html"' in page
    commands = html.unescape(page.partition('id="commands"')[2].partition("</code>")[0])
    line = commands.strip().splitlines()[-1]
    assert line == f"steadyeye leaderboard {' '.join(map(str, folders[1]))} --out board"
    assert "low <b>" not in page
    content = json.loads((out / "results.json").read_text())
    assert len(content["results"]) == 7
    assert set(content["leaderboard"]) == {"ranks", "lines", "rank correlations", "costs"}
    rows = list(csv.DictReader((out / "results.csv").open()))
    (tau,) = [row for row in rows if row["metric"] == "accuracy, Kendall's tau-b"]
    assert (tau["model"], tau["data"]) == ("3 models", "a and b")
    distances = [row for row in rows if "distance from the own line (probit)" in row["metric"]]
    assert len(distances) == 7


@pytest.mark.slow
def test_python_has_the_numbers_of_the_command(folders, tmp_path):
    done = steadyeye("leaderboard", *map(str, folders[1]), "--out", "board", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "board" / "results.json").read_text())["leaderboard"]
    site = se.leaderboard(*map(se.open_run, folders[1]), out=tmp_path / "python")
    assert list_files(tmp_path / "python") == list_files(tmp_path / "board")
    fields = ("data", "metric", "model", "value", "low", "high", "n", "rank")
    rows = [(*attrgetter(*fields)(row), *row.open_ranks, row.tied) for row in site.rows]
    assert rows == [
        (*(item[key] for key in ("data", "metric", "model", "value")), *item["interval"],
         item["n"], item["rank"], *item["ranks left open"], tuple(item["no clear difference from"]))
        for item in content["ranks"]
    ]  # fmt: skip
    assert len({row[:3] for row in rows}) == len(rows)
    keys = ("metric", "first", "second", "value", "low", "high")
    taus = [attrgetter(*keys)(pair) for pair in site.correlations]
    assert taus == [tuple(p[key] for key in keys) for p in content["rank correlations"]]
    distances = [d.value for lines in site.lines for own in lines.own for d in own.distances]
    assert distances == [d["value"] for line in content["lines"] for d in line["models"]]
    assert done.stdout.startswith("\n".join(site.findings))
    assert repr(site) == "<LeaderboardSite 4 models on 2 data sets>"
    assert "low &lt;b&gt;" in site._repr_html_()
    assert "low <b>" not in site._repr_html_()


def list_files(folder):
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "index.html"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_python_writes_only_where_it_is_told(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    site = se.leaderboard(*folders[1][:4], metrics="accuracy")
    assert build_document(site).commands[-1].endswith(" --metrics accuracy")
    assert list(tmp_path.iterdir()) == []
    assert {row.metric for row in site.rows} == {"accuracy"}
    with pytest.raises(se.UsageError, match=r"has one model, .*; give a run of another model"):
        se.leaderboard(folders[1][0])
    for compared in (se.leaderboard, se.compare):
        with pytest.raises(se.UsageError, match="give runs of two models or more"):
            compared()
        with pytest.raises(se.UsageError, match=r"give each run by itself: \*runs"):
            compared(folders[1][:4])
    (tmp_path / "file").touch()
    with pytest.raises(se.UsageError, match="file"):
        se.leaderboard(*folders[1][:4], out=tmp_path / "file")


def test_ranks_are_counted_from_the_pairs(site):
    places = [(item.data, board) for item in site.rankings for board in item.boards]
    for data, board in places:
        for row in (r for r in site.rows if (r.data, r.metric) == (data, board.metric)):
            better = [pair for pair in board.pairs if pair.worse == row.model]
            worse = [pair for pair in board.pairs if pair.better == row.model]
            assert row.rank == 1 + sum(pair.is_clear for pair in better)
            first = 1 + sum(pair.is_ordered for pair in better)
            assert row.open_ranks == (first, row.models - sum(pair.is_ordered for pair in worse))
            assert row.models == 1 + len(better) + len(worse)
    assert any(row.open_ranks == (1, row.models) for row in site.rows)


def rank_models(shares, videos, anchors=10):
    """The leaderboard of models that are right on so many of ten anchors of each video."""
    names = np.repeat([f"v{i:02d}" for i in range(videos)], anchors)
    entries = []
    for place, wins in enumerate(shares):
        success = np.tile(np.arange(anchors) < wins, videos)
        result = Result("accuracy", wins / anchors, 0, 1, len(names), "")
        entries.append(RankedModel(f"m{place}", result, Trials(success, names)))
    return leaderboard("accuracy", entries)


def test_a_lead_that_a_rare_video_may_undo_leaves_the_ranks_open():
    small, large = rank_models((9, 10), videos=20), rank_models((1, 10), videos=20)
    assert [pair.is_clear for board in (small, large) for pair in board.pairs] == [True, True]
    assert [(s.rank, s.open_ranks) for s in small.standings] == [(1, (1, 2)), (2, (1, 2))]
    assert [(s.rank, s.open_ranks) for s in large.standings] == [(1, (1, 1)), (2, (2, 2))]


def test_a_card_has_number_interval_rank_date_and_commit(site):
    card = build_card(site, "middle", describe_origin(site))
    assert [row.data for row in card.rows] == ["a", "b"]
    assert card.rows[0].models == 4
    assert "n = 24" in card.rows[0].details
    assert "commit" in card.origin
    assert card.origin[:2] == "20"


def test_a_card_says_how_many_data_sets_it_leaves_out(site, monkeypatch):
    assert build_card(site, "middle", "").subtitle.startswith("2 data sets, ")
    assert build_card(site, "higher", "").subtitle.startswith("1 data set, ")
    monkeypatch.setattr(leaderboard_files, "ROWS", 1)
    card = build_card(site, "middle", "")
    assert [row.data for row in card.rows] == ["a"]
    assert card.subtitle.startswith("1 of 2 data sets, ")


def test_a_card_explains_a_shared_rank_where_it_has_one(site, monkeypatch):
    card = build_card(site, "middle", "")
    assert "=" in card.rows[0].rank
    assert card.note.endswith("; =: shared")
    monkeypatch.setattr(leaderboard_files, "rank", lambda board, place: "2")
    assert build_card(site, "middle", "").note.endswith("on the same samples")


def test_names_of_cards_are_no_paths_and_differ(site, monkeypatch):
    names = ("../a", "a", "A", "..", "é")
    monkeypatch.setattr(type(site), "names", names)
    files = name_files(site)
    assert list(files) == list(names)
    assert len({file.lower() for file in files.values()}) == len(names)
    assert not any(set(file) & set("/\\") or file.startswith(".") for file in files.values())


def test_a_model_has_one_name_on_all_data(site):
    first, second = site.models
    model_groups = leaderboard_site.unify_names([first, second])
    assert [m.predictions.model for m in model_groups[1]] == [m.predictions.model for m in second]
    marks = {m.predictions.model: m.predictions.model_mark for m in (*first, *second)}
    assert len(set(marks.values())) == len(marks)


def test_bad_input_is_an_error_in_one_line(folders):
    root, runs = folders
    assert "'0a' has one model, " in refused("leaderboard", "0a", cwd=root)
    assert "no samples in common" in refused("leaderboard", "0a", "alone", cwd=root)
    assert "no run in 'nowhere'" in refused("leaderboard", "nowhere", "0a", cwd=root)
    assert "given twice" in refused("leaderboard", "0a", "0a", cwd=root)
    assert len(runs) == 7


def test_two_models_have_no_line_and_no_correlation(folders):
    site = build_site(folders[1][:4])
    assert site.correlations == ()
    titles = {s.title: s for s in build_document(site).sections}
    (line, _) = [s for title, s in titles.items() if title.startswith("The line from accuracy")]
    assert line.text == (
        "A line through your own models needs 3 models or more; there are 2 models.",
    )
    question = titles["Are the models that are better on one data set better on another?"]
    assert question.text[0].startswith("This needs three models or more")


@pytest.mark.slow
def test_files_of_something_else_are_not_replaced(folders, tmp_path):
    words = ("leaderboard", *map(str, folders[1][:4]), "--out")
    for name in ("results.json", "index.html"):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text('{"results": []}')
        message = refused(*words, folder, cwd=tmp_path)
        assert f"holds '{name}', which is no file of a leaderboard" in message
        assert (folder / name).read_text() == '{"results": []}'
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "notes.txt").write_text("mine")
    for _ in range(2):
        assert steadyeye(*words, "board", cwd=tmp_path).returncode == 0
    assert (tmp_path / "board" / "notes.txt").read_text() == "mine"


@pytest.mark.slow
def test_the_page_and_a_card_in_a_browser(browser, site, tmp_path):
    leaderboard_files.write_site(site, tmp_path)
    for page in ("index.html", "cards/low--b.html"):
        address = (tmp_path / page).as_uri()
        window = page_checks.open_page(browser, address, page_checks.LOOKS[0], offline=True)
        page_checks.unfold(window.page)
        for look in page_checks.LOOKS[:2]:
            page_checks.show_as(window.page, look, motion="reduce")
            faults = page_checks.find_faults(window)
            violations = page_checks.find_violations(window.page)
            assert faults + violations == [], (page, look)
        window.page.context.close()
