"""Attribution inside the box: masks and maps by hand, planted detectors, the analysis."""

import json
from dataclasses import replace

import numpy as np
import pytest
import toy_detectors
import vl_convert

from steadyeye.core.errors import UsageError
from steadyeye.core.report_types import Heat
from steadyeye.core.types import Evaluated
from steadyeye.explain import run
from steadyeye.explain.attributions import attributions, similarity
from steadyeye.explain.saliency import (
    SIDE,
    RandomMask,
    area,
    centres,
    cover_patch,
    evenly,
    fade_image,
    occlusion,
    patch,
    random_mask,
    rise,
    share,
    sum_cells,
    weigh_mask,
    weigh_patches,
)
from steadyeye.report import build
from steadyeye.report.analyses.attribution import attribution
from steadyeye.report.overlays import draw_heat
from steadyeye.runner.collect import tables
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent


def test_the_share_of_a_map_all_alike_is_the_area_of_the_box():
    box = (1.5, 0.0, 4.0, 2.25)
    assert share(np.ones((4, 5)), box) == pytest.approx(2.5 * 2.25 / 20)
    assert area(box, 4, 5) == pytest.approx(2.5 * 2.25 / 20)
    # what reaches out of the image counts neither above nor below the line
    assert area((-3, -3, 2.5, 2), 4, 5) == pytest.approx(5 / 20)
    assert share(np.ones((4, 5)), (-3, -3, 2.5, 2)) == pytest.approx(5 / 20)


def test_the_share_counts_what_is_against_as_what_is_for():
    values = np.zeros((4, 4))
    values[1, 1], values[3, 3] = -3.0, 1.0
    assert share(values, (0, 0, 2, 2)) == pytest.approx(0.75)
    # the box cuts the one cell in half
    assert share(values, (1.5, 0, 4, 4)) == pytest.approx((1.5 + 1) / 4)
    assert np.isnan(share(np.zeros((4, 4)), (0, 0, 2, 2)))


def test_a_reduced_map_keeps_its_sum_and_its_places():
    values = np.random.default_rng(0).random((90, 133))
    small = sum_cells(values, 90, 133)
    assert small.shape == (SIDE, SIDE)
    assert small.sum() == pytest.approx(values.sum())
    assert small[:24, :24].sum() == pytest.approx(
        values[:45, :66].sum() + values[:45, 66].sum() / 2
    )


def test_a_random_mask_is_the_grid_between_its_lines():
    grid = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]], dtype=float)
    # two cells: at shift 0.5 the share 0.25 of the height lies on line 1
    mask = RandomMask(grid, (0.5, 0.0))
    got = mask.at(np.array([0.25, 0.5]), np.array([0.0, 0.25, 0.5]))
    np.testing.assert_allclose(got[0], [0, 0.5, 1])
    np.testing.assert_allclose(got[1], [(0 + 1) / 2, (0.5 + 1) / 2, (1 + 1) / 2])


def test_masks_depend_on_seed_and_names_alone_and_keep_their_share():
    mask, same = random_mask(8, 0.5, 3, "", "a#0", "7"), random_mask(8, 0.5, 3, "", "a#0", "7")
    np.testing.assert_array_equal(mask.grid, same.grid)
    assert mask.shift == same.shift
    others = [random_mask(8, 0.5, 4, "", "a#0", "7"), random_mask(8, 0.5, 3, "", "a#0", "8")]
    assert all(other.shift != mask.shift for other in others)
    at = centres(40)
    mean_mask = np.mean([random_mask(8, 0.3, 0, str(i)).at(at, at) for i in range(300)], axis=0)
    assert abs(mean_mask - 0.3).max() < 0.1
    assert mean_mask.mean() == pytest.approx(0.3, abs=0.01)


def test_hidden_places_are_filled_and_the_image_stays():
    image = np.random.default_rng(1).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    before = image.copy()
    mask = np.zeros((6, 8))
    mask[:, 4:], mask[2, 2] = 1, 0.5
    pixels = fade_image(image, mask, 100)
    np.testing.assert_array_equal(pixels[:, 4:], image[:, 4:])
    assert (pixels[0, :4] == 100).all()
    np.testing.assert_allclose(pixels[2, 2], (image[2, 2].astype(float) + 100) / 2, atol=0.5)
    # the last of 2 × 2 places: from the middle of the third quarter to the end
    assert patch(3, 2) == (0.25, 1.0, 0.25, 1.0)
    hidden = cover_patch(image, patch(0, 2), 127)
    assert (hidden[:4, :6] == 127).all()
    np.testing.assert_array_equal(hidden[4:], image[4:])
    np.testing.assert_array_equal(image, before)


def test_occlusion_of_a_score_at_one_place():
    # the score falls from 1 to 0 where the cell in row 22, column 30 is hidden
    patches = 12
    under = np.array([weigh_patches(number, patches) for number in range(patches**2)])
    drops = under[:, 22, 30]
    heat = occlusion(drops, under)
    # patches begin at −2, 2, 6 … and are 8 long: rows 18 to 29 lie under one that hides it, those
    # before 22 and after 25 under as many that do not
    assert heat[22, 30] == 1
    assert heat[18, 30] == pytest.approx(0.5)
    assert heat[18, 26] == pytest.approx(0.25)
    rows, columns = np.nonzero(heat)
    assert (rows.min(), rows.max()) == (18, 29)
    assert (columns.min(), columns.max()) == (26, 37)


def test_rise_finds_where_a_linear_score_comes_from():
    masks = np.array([weigh_mask(random_mask(6, 0.5, 0, str(i))) for i in range(600)])
    heat = rise(masks[:, 10:16, 30:36].mean(axis=(1, 2)), masks)
    row, column = np.unravel_index(heat.argmax(), heat.shape)
    assert row in range(8, 18)
    assert column in range(28, 38)
    # a score that is the mask's own value at a place rises by 1 there
    assert rise(masks[:, 10, 30], masks)[10, 30] == pytest.approx(1)
    assert not rise(np.ones(600), masks).any()
    assert not rise(np.ones(1), masks[:1]).any()


def test_evenly_is_the_box_in_cells():
    cells = evenly((1.5, 2, 3, 3))
    assert cells.sum() == pytest.approx(1)
    assert cells[2, 1:4].tolist() == pytest.approx([1 / 3, 2 / 3, 0])
    assert not evenly((-5, -5, -1, -1)).any()


def test_heat_leaves_grey_where_there_is_none_and_the_image_as_it_was():
    image = np.full((20, 30, 3), (200, 20, 20), dtype=np.uint8)
    before = image.copy()
    rows = tuple(tuple(1.0 if i < 2 and j < 2 else 0.0 for j in range(6)) for i in range(4))
    picture = draw_heat(image, Heat(rows))
    np.testing.assert_array_equal(image, before)
    assert draw_heat(image, None) is image
    far = picture[-1, -1].astype(int)
    assert far.max() - far.min() == 0
    assert picture[2, 2].astype(int).sum() > 400
    assert picture[2, 2, 0] > picture[2, 2, 2]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return toy_detectors.write(tmp_path_factory.mktemp("photos"))


def explain_toy(out, toy, data, analyses, limit=None):
    """The explanation of a toy detector, and its sealed probe tables."""
    job = Job((f"callable_detector(path='toy_detectors:{toy}')",), (data,), str(out), workers=1)
    explanation = run.explain(run.check(job, run.Explaining(analyses, limit=limit)), Silent())
    return explanation, [table for _, table in tables([out]) if table.probe]


@pytest.mark.parametrize(("toy", "inside"), [("looks_inside", 1.0), ("looks_outside", 0.0)])
def test_integrated_gradients_of_planted_detectors_are_all_or_nothing(
    tmp_path, photos, toy, inside
):
    explanation, (probe,) = explain_toy(tmp_path / "run", toy, photos, "attribution")
    maps = attributions(probe)
    assert [target_map.cause for target_map in maps] == ["misclassification"] * 3 + [""] * 3
    assert [target_map.share for target_map in maps] == pytest.approx([inside] * 6, abs=1e-6)
    assert [target_map.area for target_map in maps] == pytest.approx([30 * 24 / (48 * 60)] * 6)
    assert max(target_map.residual for target_map in maps) < 0.01
    section = attribution(explanation.evaluated[-1:])
    assert "integrated gradients" in section.title
    assert f"Mistakes {inside * 100:.1f}\u202f%, correct detections" in section.title
    assert section.tables[0].rows[-1][3].startswith("+0.0")
    assert "The sum of each of 6 maps is the score difference within 1 %" in section.text[-1]
    # each target is a shard of its own: little is lost when it is stopped
    assert len(list((tmp_path / "run" / "cells").glob("*+attribution/*.arrow"))) == 6


@pytest.mark.slow
def test_a_black_box_is_explained_by_masks_which_agree_with_what_was_planted(tmp_path, photos):
    spec = "attribution(probe='rise', masks=120, cells=5), attribution(probe='occlusion')"
    explanation, probes = explain_toy(tmp_path / "run", "looks_inside", photos, spec)
    for probe in probes:
        maps = attributions(probe)
        # the toy's score falls with the part of its box that is hidden, up to what the noise adds
        for target_map in maps:
            assert target_map.share == pytest.approx(target_map.even, abs=0.06), probe.data
            assert target_map.share > target_map.area + 0.2
        assert max(target_map.gone for target_map in maps) == 0
    sections = [
        attribution([evaluation])
        for evaluation in explanation.evaluated
        if evaluation.predictions.probe
    ]
    assert ["RISE" in section.title for section in sections] == [True, False]
    assert ["occlusion" in section.title for section in sections] == [False, True]
    content = build.write_explanation(explanation)
    assert (
        sum("attribution is inside the box" in section.title for section in content.sections) == 2
    )
    # 24 maps, and six mistakes by their causes
    assert len(list((tmp_path / "run" / "pictures").iterdir())) == 30


@pytest.mark.slow
def test_without_a_gradient_the_black_box_methods_are_named(tmp_path, photos):
    with pytest.raises(UsageError, match=r"has no gradients; use attribution\(probe='rise'"):
        explain_toy(
            tmp_path / "a", "black_box", photos, "attribution(probe='integrated_gradients')"
        )
    _, (probe,) = explain_toy(tmp_path / "b", "black_box", photos, "attribution", limit=1)
    assert set(probe.tags["attribution"]) == {"rise"}
    with pytest.raises(UsageError, match="give at least two masks"):
        explain_toy(tmp_path / "c", "black_box", photos, "attribution(probe='rise', masks=1)")
    spec = "attribution(probe='integrated_gradients', baseline='white')"
    with pytest.raises(UsageError, match="no baseline named 'white'"):
        explain_toy(tmp_path / "d", "looks_inside", photos, spec)


@pytest.fixture
def probe_table(tmp_path, photos):
    return explain_toy(
        tmp_path / "run", "looks_inside", photos, "attribution(probe='occlusion', patches=3)"
    )[1][0]


def test_similarity_is_the_best_overlap_times_score_in_the_class(probe_table):
    detections = probe_table.detections
    left = similarity(probe_table)
    np.testing.assert_allclose(left, detections.score, rtol=1e-12)
    # half of the box away: IoU 1/3; another class: nothing left
    moved = replace(detections, boxes=detections.boxes + np.array([15.0, 0, 15, 0]))
    np.testing.assert_allclose(
        similarity(replace(probe_table, detections=moved)), detections.score / 3
    )
    other = replace(detections, label=detections.label + 1)
    assert not similarity(replace(probe_table, detections=other)).any()


def test_a_map_that_nothing_changed_is_left_out_and_counted(probe_table):
    same = replace(probe_table.detections, score=np.full(len(probe_table.detections), 0.9))
    assert attribution([Evaluated(replace(probe_table, detections=same), {})]) is None
    first = same.score.copy()
    first[1:10] = np.linspace(0.1, 0.9, 9)
    predictions = replace(probe_table, detections=replace(same, score=first))
    section = attribution([Evaluated(predictions, {})])
    assert "5 detections have no map" in section.text[-1]
    assert section.tables[0].rows[0][1] == "1"


def test_integrated_gradients_that_do_not_add_up_are_a_caveat_and_stay(tmp_path, photos):
    _, (probe,) = explain_toy(tmp_path / "run", "looks_inside", photos, "attribution")
    residual = probe.tags["residual"].copy()
    residual[0] = 0.2
    tags = {**probe.tags, "residual": residual}
    section = attribution([Evaluated(replace(probe, tags=tags), {})])
    assert "For 1 of 6 maps the sum differs from the score difference" in section.text[-1]
    assert "largest error 20.0" in section.text[-1]
    assert section.tables[0].rows[0][1] == "3"


def test_the_section_repeats_and_draws(probe_table):
    evaluation = Evaluated(probe_table, {})
    section = attribution([evaluation])
    assert attribution([evaluation]) == section
    for figure in section.figures:
        assert vl_convert.vegalite_to_svg(json.loads(json.dumps(figure.spec))).startswith("<svg")
        assert figure.alt
    plain, heat = section.exhibits[0].pictures
    assert plain.heat is None
    assert len(heat.heat.rows) == SIDE
    assert plain.sample == heat.sample


def test_a_stopped_probe_continues_where_it_was(tmp_path, photos):
    spec = "attribution(probe='rise', masks=10, cells=4)"
    _, (before,) = explain_toy(tmp_path / "run", "looks_inside", photos, spec)
    (cell,) = (tmp_path / "run" / "cells").glob("*+rise")
    (cell / "seal.json").unlink()
    (cell / "00001.arrow").unlink()
    write_time = (cell / "00000.arrow").stat().st_mtime_ns
    _, (after,) = explain_toy(tmp_path / "run", "looks_inside", photos, spec)
    assert (cell / "00000.arrow").stat().st_mtime_ns == write_time
    np.testing.assert_array_equal(similarity(before), similarity(after))
