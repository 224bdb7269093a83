"""Blind spots from a detector's crops to the page: sealed vectors, spots, map, thumbnails."""

import json
from dataclasses import replace
from pathlib import Path

import blind_toys as toys
import numpy as np
import pytest
import vl_convert
from conftest import PATIENCE

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Evaluated
from steadyeye.explain import run as explaining
from steadyeye.explain.embedding.blind_spots import blindness, examples
from steadyeye.explain.embedding.density_ratio import space
from steadyeye.predictions.read import read
from steadyeye.report import build
from steadyeye.report.analyses.blind_spots import blind_spots
from steadyeye.report.charts.embedding_map import layout
from steadyeye.report.sections import sections
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent

ANALYSIS = "blind_spots(embedder=\"callable(path='blind_toys:means', size=16)\"{more})"


def explain_toy(toy, out, more="", **job):
    data, reference, model = toy
    how = explaining.Explaining(ANALYSIS.format(more=more), reference)
    plan = explaining.check(Job(models=(model,), data=(data, reference), out=str(out), **job), how)
    return explaining.explain(plan, Silent())


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """(data, reference, model): the data has twelve blue squares, the reference none."""
    root = tmp_path_factory.mktemp("blind")
    data = toys.write(root, "data", ["red", "green", "blue"] * 12, 1)
    reference = toys.write(root, "usual", ["red", "green"] * 20, 2)
    (root / "classes.json").write_text(json.dumps(list(toys.CLASSES)))
    model = f"callable_detector(path='blind_toys:detector', classes='{root}/classes.json')"
    return data, reference, model


@pytest.fixture(scope="module")
def whole(toy, tmp_path_factory):
    explanation = explain_toy(toy, tmp_path_factory.mktemp("run") / "run")
    build.write_explanation(explanation)
    return explanation


def _as_videos(evaluation, video):
    """The table of a model or of its probe, with a `video` for the id of each image."""
    table = evaluation.predictions
    images = table.tags.get("image", table.ids)
    tags = {**table.tags, "video": np.array([video.get(image, image) for image in images])}
    if not table.probe:
        tags["frame"] = np.arange(len(table))
    return replace(evaluation, predictions=replace(table, tags=tags))


def cell(explanation):
    return explanation.out / "cells" / "detector@data+blind_spots"


@pytest.mark.parametrize("of", ["truth", "images", "detections"])
def test_data_without_mistakes_have_blind_spots_too(toy, tmp_path, of):
    _, reference, model = toy
    clean = toys.write(tmp_path, "clean", ["red", "green"] * 8, 3)
    done = explain_toy((clean, reference, model), tmp_path / "run", f", of='{of}'")
    table = read(tmp_path / "run" / "cells" / "detector@clean+blind_spots")
    assert (np.asarray(table.tags["set"]) == "data").sum() == 16
    assert not np.asarray(table.tags["cause"], dtype=bool).any()
    build.write_explanation(done)
    assert done.headline[0].startswith("detector is wrong in 0.0\u202f% of 16 detections")


def test_every_confident_detection_of_both_sets_is_a_vector(whole):
    table = read(cell(whole))
    assert len(table) == 36 + 40
    assert table.scores.shape == (76, 3)
    assert (np.asarray(table.tags["set"]) == "reference").sum() == 40
    blue = np.asarray(table.tags["true"]) == "blue"
    assert blue.sum() == 12
    assert set(table.tags["cause"][blue]) == {"out_of_distribution"}
    assert set(table.tags["said"][blue]) == {"green"}
    # the crop is the box enlarged by a fifth: its middle is the square's own colour
    assert (table.scores[blue].argmax(axis=1) == 2).all()
    assert table.probe["settings"]["enlarge"] == 0.2
    assert table.probe["settings"]["layer"] == "what it returns"


def test_regions_that_the_reference_lacks_are_a_blind_spot(whole):
    table = read(cell(whole))
    regions = blindness(table)
    blue = regions.tag("true") == "blue"
    assert regions.proven
    np.testing.assert_array_equal(regions.chosen, blue)
    assert regions.spots == 1
    rows, nearest = examples(regions, 0)
    assert len({str(table.tags["image"][row]) for row in rows}) == 3
    assert table.tags["set"][nearest] == "reference"
    section = blind_spots([Evaluated(table, {})])
    assert section.title == "Blind spots: 1 region that is sparse in the reference data"
    first, *lone, rest = section.tables[0].rows
    inside = int((regions.spot == 0).sum())
    assert inside >= 10
    assert sum(int(row[1]) for row in lone) == 12 - inside
    # all that are in it are wrong, one an image: Clopper and Pearson; elsewhere none of 24
    low = 100 * 0.025 ** (1 / inside)
    assert first[:3] == ("1", str(inside), str(inside))
    assert first[3] == f"100.0\u202f% ({low:.1f}–100.0\u202f%)"
    assert first[5] == f"blue → green ({inside} of {inside})"
    assert rest[3] == "0.0\u202f% (0.0–14.2\u202f%)"
    assert "12 of 36 are in sparse regions" in section.text[1]
    title = f"Blind spot 1: blue → green ({inside} of {inside}), {inside} mistakes"
    assert [exhibit.title for exhibit in section.exhibits] == [title]


def test_a_mistake_in_a_video_is_a_film_of_the_frames_around(whole):
    stills = sections(whole.evaluated, ["blind_spots"])[0]
    assert [exhibit.film for exhibit in stills.exhibits] == [None]
    # the images of every colour as three videos: the blue ones are three frames apart
    frames, videos = np.arange(36), np.repeat(["a", "b", "c"], 12)
    video = {f"{i:02}": name for i, name in enumerate(videos)}
    evaluated = [_as_videos(evaluation, video) for evaluation in whole.evaluated]
    base = next(
        evaluation for evaluation in evaluated if not evaluation.predictions.probe
    ).predictions
    _, *films = sections(evaluated, ["blind_spots"])[0].exhibits
    assert films
    for exhibit in films:
        film, picture = exhibit.film, exhibit.pictures[0]
        assert exhibit.title == "Blind spot 1: blue → green, in its video"
        assert (exhibit.model, exhibit.data) == (base.model, base.data)
        start = base.ids.tolist().index(picture.sample)
        near = frames[(videos == videos[start]) & (abs(frames - start) <= 5)]
        assert [frame.sample for frame in film.frames] == base.ids[near].tolist()
        assert film.frames[film.start].sample == picture.sample
        assert [frame.right for frame in film.frames] == (near % 3 != 2).tolist()
        assert [mark.text for mark in picture.marks] == ["green 0.95"]
    film_videos = [video[exhibit.pictures[0].sample] for exhibit in films]
    assert len(set(film_videos)) == len(film_videos), "a film shows the other mistakes of its video"


def test_the_section_repeats_draws_and_hears_any_order(whole):
    table = read(cell(whole))
    section = blind_spots([Evaluated(table, {})])
    assert blind_spots([Evaluated(table, {})]) == section
    order = np.random.default_rng(0).permutation(len(table))
    turned = replace(
        table,
        ids=table.ids[order],
        errors=table.errors[order],
        scores=table.scores[order],
        tags={name: values[order] for name, values in table.tags.items()},
    )
    other = blind_spots([Evaluated(turned, {})])
    assert other.tables == section.tables
    assert other.text == section.text
    for figure in section.figures:
        svg = vl_convert.vegalite_to_svg(json.loads(json.dumps(figure.spec)))
        assert svg.count("<path") > 76
        assert figure.alt.startswith("A UMAP map of 40 regions of the reference data and 36")
    assert len(section.figures[0].thumbnails) == 76


def test_the_map_is_umap_seeded():
    # beside the other maps: a process that first uses UMAP compiles it for ten seconds
    pytest.importorskip("umap")
    clouds = np.random.default_rng(0).normal(size=(2, 40, 12)).astype(np.float32)
    points = space(np.concatenate([clouds[0] + 5, clouds[1] - 5]))
    projection, other = layout(points), layout(points)
    assert projection.name == "UMAP"
    np.testing.assert_array_equal(projection.place, other.place)
    apart = np.linalg.norm(projection.place[:40].mean(axis=0) - projection.place[40:].mean(axis=0))
    assert apart > projection.place[:40].std()


def test_unknown_causes_do_not_count_as_right_or_wrong(whole):
    table = read(cell(whole))
    cause = table.tags["cause"].copy()
    blue = np.flatnonzero(np.asarray(table.tags["true"]) == "blue")
    cause[blue[:5]] = "unverified"
    table = replace(table, tags={**table.tags, "cause": cause})
    rows = blind_spots([Evaluated(table, {})]).tables[0].rows[:-1]
    assert sum(int(row[1]) for row in rows) == 12
    assert sum(int(row[4]) for row in rows) == 7


def test_shuffled_sets_have_no_spot(whole):
    table = read(cell(whole))
    red = np.asarray(table.tags["said"]) == "red"
    sets = np.where(np.arange(len(table)) % 2 == 0, "reference", "data")
    same = replace(
        table,
        ids=table.ids[red],
        errors=table.errors[red],
        scores=table.scores[red],
        tags={**{name: values[red] for name, values in table.tags.items()}, "set": sets[red]},
    )
    section = blind_spots([Evaluated(same, {})])
    assert section.title == "Blind spots: none found"
    assert "no region is sparser than with shuffled labels" in section.text[1]


def test_a_reference_too_small_says_so(whole):
    table = read(cell(whole))
    few = np.flatnonzero((table.tags["set"] == "data") | (np.arange(len(table)) < 3))
    small = replace(
        table,
        ids=table.ids[few],
        errors=table.errors[few],
        scores=table.scores[few],
        tags={name: values[few] for name, values in table.tags.items()},
    )
    section = blind_spots([Evaluated(small, {})])
    assert "not enough regions; at least 4 images" in section.text[1]
    assert not section.figures


@pytest.mark.parametrize(
    ("of", "regions", "causes"),
    [
        ("truth", 76, {"", "out_of_distribution"}),
        ("images", 76, {"", "mistake"}),
    ],
)
def test_true_boxes_and_whole_images_can_be_embedded(toy, tmp_path, of, regions, causes):
    explanation = explain_toy(toy, tmp_path / "run", f", of='{of}'")
    table = read(cell(explanation))
    assert len(table) == regions
    assert set(table.tags["cause"]) == causes
    wrong = np.asarray(table.tags["cause"]) != ""
    assert set(table.tags["true"][wrong]) == {"blue"}


def test_threads_and_batches_change_nothing(toy, whole, tmp_path):
    explanation = explain_toy(toy, tmp_path / "run", workers=3, batch=5)
    table, other = read(cell(whole)), read(cell(explanation))
    assert table.ids.tolist() == other.ids.tolist()
    np.testing.assert_array_equal(table.scores, other.scores)


def test_a_limit_draws_the_same_regions_of_either_set(toy, whole, tmp_path):
    explanation = explain_toy(toy, tmp_path / "run", ", most=15")
    table = read(cell(explanation))
    assert len(table) == 30
    assert (table.tags["set"] == "data").sum() == 15
    assert set(table.ids.tolist()) < set(read(cell(whole)).ids.tolist())
    again = read(cell(explain_toy(toy, tmp_path / "again", ", most=15")))
    assert again.ids.tolist() == table.ids.tolist()


def test_invalid_arguments_of_blind_spots_are_refused_in_one_line(toy, tmp_path):
    data, _, model = toy
    with pytest.raises(UsageError, match="no kind of region named 'boxs'"):
        explain_toy(toy, tmp_path / "a", ", of='boxs'")
    with pytest.raises(UsageError, match="enlarge=9: give a share from 0 to 4"):
        explain_toy(toy, tmp_path / "b", ", enlarge=9")
    with pytest.raises(UsageError, match="give at least 1 region"):
        explain_toy(toy, tmp_path / "c", ", most=0")
    how = explaining.Explaining(ANALYSIS.format(more=""))
    alone = Job(models=(model,), data=(data,), out=str(tmp_path / "d"))
    # before the detector and the other probes have run
    with pytest.raises(UsageError, match="blind_spots needs reference data; give --reference"):
        explaining.check(alone, how)


def test_the_report_begins_with_the_mistakes_and_is_one_file(whole):
    page = (whole.out / "report.html").read_text()
    titles = [section.title for section in build.explanation(whole).sections]
    assert titles[0].startswith("Confident mistakes: 12 of 36")
    assert titles[-1] == "Blind spots: 1 region that is sparse in the reference data"
    assert page.count('"image": "data:image/jpeg') == 76
    assert "http-equiv" in page
    # made again from what is sealed and kept
    again = whole.out.parent / "again.html"
    build.write([whole.out], [again])
    assert again.read_text().count('"image": "data:image/jpeg') == 76


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_point_shows_its_picture_on_hover(whole, browser, scheme):
    page = browser.new_page(color_scheme=scheme)
    page.set_default_timeout(PATIENCE)
    messages = []
    page.on("console", lambda message: messages.append(message.text))
    page.on(
        "request", lambda request: messages.append(request.url) if "://" in request.url else None
    )
    page.goto(f"file://{Path(whole.out / 'report.html').resolve()}")
    page.wait_for_function("document.documentElement.dataset.drawn")
    figure = page.locator("figure.chart[data-name^=blind-spots]")
    point = figure.locator("g.mark-symbol.role-mark path").last
    point.scroll_into_view_if_needed()
    point.hover()
    tip = page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    assert "green, 95" in tip.inner_text()
    assert "blue" in tip.inner_text()
    size = tip.locator("img").evaluate("picture => [picture.naturalWidth, picture.naturalHeight]")
    assert size == [24, 24]
    assert ("dark-theme" in tip.get_attribute("class")) == (scheme == "dark")
    assert [line for line in messages if not line.startswith("file://")] == []
    page.close()
