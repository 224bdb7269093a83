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
    one, same = random_mask(8, 0.5, 3, "", "a#0", "7"), random_mask(8, 0.5, 3, "", "a#0", "7")
    np.testing.assert_array_equal(one.grid, same.grid)
    assert one.shift == same.shift
    others = [random_mask(8, 0.5, 4, "", "a#0", "7"), random_mask(8, 0.5, 3, "", "a#0", "8")]
    assert all(other.shift != one.shift for other in others)
    at = centres(40)
    kept = np.mean([random_mask(8, 0.3, 0, str(i)).at(at, at) for i in range(300)], axis=0)
    assert abs(kept - 0.3).max() < 0.1
    assert kept.mean() == pytest.approx(0.3, abs=0.01)


def test_hidden_places_are_filled_and_the_image_stays():
    image = np.random.default_rng(1).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    before = image.copy()
    kept = np.zeros((6, 8))
    kept[:, 4:], kept[2, 2] = 1, 0.5
    found = fade_image(image, kept, 100)
    np.testing.assert_array_equal(found[:, 4:], image[:, 4:])
    assert (found[0, :4] == 100).all()
    np.testing.assert_allclose(found[2, 2], (image[2, 2].astype(float) + 100) / 2, atol=0.5)
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
    found = occlusion(drops, under)
    # patches begin at −2, 2, 6 … and are 8 long: rows 18 to 29 lie under one that hides it, those
    # before 22 and after 25 under as many that do not
    assert found[22, 30] == 1
    assert found[18, 30] == pytest.approx(0.5)
    assert found[18, 26] == pytest.approx(0.25)
    rows, columns = np.nonzero(found)
    assert (rows.min(), rows.max()) == (18, 29)
    assert (columns.min(), columns.max()) == (26, 37)


def test_rise_finds_where_a_linear_score_comes_from():
    kept = np.array([weigh_mask(random_mask(6, 0.5, 0, str(i))) for i in range(600)])
    found = rise(kept[:, 10:16, 30:36].mean(axis=(1, 2)), kept)
    row, column = np.unravel_index(found.argmax(), found.shape)
    assert row in range(8, 18)
    assert column in range(28, 38)
    # a score that is the mask's own value at a place rises by 1 there
    assert rise(kept[:, 10, 30], kept)[10, 30] == pytest.approx(1)
    assert not rise(np.ones(600), kept).any()
    assert not rise(np.ones(1), kept[:1]).any()


def test_evenly_is_the_box_in_cells():
    found = evenly((1.5, 2, 3, 3))
    assert found.sum() == pytest.approx(1)
    assert found[2, 1:4].tolist() == pytest.approx([1 / 3, 2 / 3, 0])
    assert not evenly((-5, -5, -1, -1)).any()


def test_heat_leaves_grey_where_there_is_none_and_the_image_as_it_was():
    image = np.full((20, 30, 3), (200, 20, 20), dtype=np.uint8)
    before = image.copy()
    rows = tuple(tuple(1.0 if i < 2 and j < 2 else 0.0 for j in range(6)) for i in range(4))
    found = draw_heat(image, Heat(rows))
    np.testing.assert_array_equal(image, before)
    assert draw_heat(image, None) is image
    far = found[-1, -1].astype(int)
    assert far.max() - far.min() == 0
    assert found[2, 2].astype(int).sum() > 400
    assert found[2, 2, 0] > found[2, 2, 2]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return toy_detectors.write(tmp_path_factory.mktemp("photos"))


def explained(out, toy, data, analyses):
    """What is explained of a toy detector, and the sealed probes."""
    job = Job((f"callable_detector(path='toy_detectors:{toy}')",), (data,), str(out), workers=1)
    found = run.explain(run.check(job, run.Explaining(analyses)), Silent())
    return found, [table for _, table in tables([out]) if table.probe]


@pytest.mark.parametrize(("toy", "inside"), [("looks_inside", 1.0), ("looks_outside", 0.0)])
def test_integrated_gradients_of_planted_detectors_are_all_or_nothing(
    tmp_path, photos, toy, inside
):
    found, (probe,) = explained(tmp_path / "run", toy, photos, "attribution")
    maps = attributions(probe)
    assert [each.cause for each in maps] == ["misclassification"] * 3 + [""] * 3
    assert [each.share for each in maps] == pytest.approx([inside] * 6, abs=1e-6)
    assert [each.area for each in maps] == pytest.approx([30 * 24 / (48 * 60)] * 6)
    assert max(each.residual for each in maps) < 0.01
    section = attribution(found.evaluated[-1:])
    assert "integrated gradients" in section.title
    assert f"Mistakes {inside * 100:.1f}\u202f%, correct detections" in section.title
    assert section.tables[0].rows[-1][3].startswith("+0.0")
    assert "All 6 maps sum to the score difference within 1 %" in section.text[-1]
    # each target is a shard of its own: little is lost when it is stopped
    assert len(list((tmp_path / "run" / "cells").glob("*+attribution/*.arrow"))) == 6


@pytest.mark.slow
def test_a_black_box_is_explained_by_masks_which_agree_with_what_was_planted(tmp_path, photos):
    spec = "attribution(probe='rise', masks=120, cells=5), attribution(probe='occlusion')"
    found, probes = explained(tmp_path / "run", "looks_inside", photos, spec)
    for probe in probes:
        maps = attributions(probe)
        # the toy's score falls with the part of its box that is hidden, up to what the noise adds
        for each in maps:
            assert each.share == pytest.approx(each.even, abs=0.06), probe.data
            assert each.share > each.area + 0.2
        assert max(each.gone for each in maps) == 0
    sections = [attribution([one]) for one in found.evaluated if one.predictions.probe]
    assert ["RISE" in each.title for each in sections] == [True, False]
    assert ["occlusion" in each.title for each in sections] == [False, True]
    content = build.write_explanation(found)
    assert sum("attribution is inside the box" in each.title for each in content.sections) == 2
    # 24 maps, and six mistakes by their causes
    assert len(list((tmp_path / "run" / "pictures").iterdir())) == 30


@pytest.mark.slow
def test_without_a_gradient_the_black_box_methods_are_named(tmp_path, photos):
    with pytest.raises(UsageError, match=r"has no gradients; use attribution\(probe='rise'"):
        explained(tmp_path / "a", "black_box", photos, "attribution(probe='integrated_gradients')")
    _, (probe,) = explained(tmp_path / "b", "black_box", photos, "attribution")
    assert set(probe.tags["attribution"]) == {"rise"}
    with pytest.raises(UsageError, match="give at least two masks"):
        explained(tmp_path / "c", "black_box", photos, "attribution(probe='rise', masks=1)")
    spec = "attribution(probe='integrated_gradients', baseline='white')"
    with pytest.raises(UsageError, match="no baseline named 'white'"):
        explained(tmp_path / "d", "looks_inside", photos, spec)


@pytest.fixture
def sealed(tmp_path, photos):
    return explained(
        tmp_path / "run", "looks_inside", photos, "attribution(probe='occlusion', patches=3)"
    )[1][0]


def test_similarity_is_the_best_overlap_times_score_in_the_class(sealed):
    found = sealed.detections
    left = similarity(sealed)
    np.testing.assert_allclose(left, found.score, rtol=1e-12)
    # half of the box away: IoU 1/3; another class: nothing left
    moved = replace(found, boxes=found.boxes + np.array([15.0, 0, 15, 0]))
    np.testing.assert_allclose(similarity(replace(sealed, detections=moved)), found.score / 3)
    other = replace(found, label=found.label + 1)
    assert not similarity(replace(sealed, detections=other)).any()


def test_a_map_that_nothing_changed_is_left_out_and_counted(sealed):
    same = replace(sealed.detections, score=np.full(len(sealed.detections), 0.9))
    assert attribution([Evaluated(replace(sealed, detections=same), {})]) is None
    first = same.score.copy()
    first[1:10] = np.linspace(0.1, 0.9, 9)
    one = replace(sealed, detections=replace(same, score=first))
    section = attribution([Evaluated(one, {})])
    assert "5 detections have no map" in section.text[-1]
    assert section.tables[0].rows[0][1] == "1"


def test_integrated_gradients_that_do_not_add_up_are_a_caveat_and_stay(tmp_path, photos):
    _, (probe,) = explained(tmp_path / "run", "looks_inside", photos, "attribution")
    residual = probe.tags["residual"].copy()
    residual[0] = 0.2
    tags = {**probe.tags, "residual": residual}
    section = attribution([Evaluated(replace(probe, tags=tags), {})])
    assert "For 1 of 6 maps the sum differs from the score difference" in section.text[-1]
    assert "largest error 20.0" in section.text[-1]
    assert section.tables[0].rows[0][1] == "3"


def test_the_section_repeats_and_draws(sealed):
    one = Evaluated(sealed, {})
    section = attribution([one])
    assert attribution([one]) == section
    for figure in section.figures:
        assert vl_convert.vegalite_to_svg(json.loads(json.dumps(figure.spec))).startswith("<svg")
        assert figure.alt
    plain, heat = section.exhibits[0].pictures
    assert plain.heat is None
    assert len(heat.heat.rows) == SIDE
    assert plain.sample == heat.sample


def test_a_probe_goes_on_where_it_was_stopped(tmp_path, photos):
    spec = "attribution(probe='rise', masks=10, cells=4)"
    _, (before,) = explained(tmp_path / "run", "looks_inside", photos, spec)
    (cell,) = (tmp_path / "run" / "cells").glob("*+rise")
    (cell / "seal.json").unlink()
    (cell / "00001.arrow").unlink()
    kept = (cell / "00000.arrow").stat().st_mtime_ns
    _, (after,) = explained(tmp_path / "run", "looks_inside", photos, spec)
    assert (cell / "00000.arrow").stat().st_mtime_ns == kept
    np.testing.assert_array_equal(similarity(before), similarity(after))
