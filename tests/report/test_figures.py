"""Figures and strips: legends match the marks, and a strip shows nothing twice."""

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
import vl_convert
from hand_tables import BLUR, FOG, HAND, evaluated, sweep, table, watched
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyeye.core.report_types import Mark
from steadyeye.core.types import Evaluated
from steadyeye.report.analyses.failure_strips import failure_strips
from steadyeye.report.analyses.unstable_clips import unstable_clips
from steadyeye.report.charts.specs import DASHES, PALETTE, SHAPES, draw_crossed, lines
from steadyeye.report.overlays import COLOURS, FONT, INK, LETTERS, draw_marks, enlarge, label_places
from steadyeye.report.sections import sections
from steadyeye.runner.collect import results


def layers_of(spec):
    """The unit charts of a specification."""
    inner = [*spec.get("layer", ()), *([spec["spec"]] if "spec" in spec else ())]
    return [unit for part in inner for unit in layers_of(part)] if inner else [spec]


def of_lines(spec):
    """The units of a specification that draw lines in several colours or dashes."""
    channels = {"color", "strokeDash"}
    marks = [(unit, unit["mark"]) for unit in layers_of(spec)]
    units = [unit for unit, mark in marks if isinstance(mark, dict) and mark["type"] == "line"]
    return [unit for unit in units if channels & {*unit["encoding"]}]


@pytest.fixture(scope="module")
def figures():
    """Every figure of several models on sets, and on a sweep."""
    plain = [evaluated(table(**HAND), model=f"model {i}") for i in range(3)]
    swept = [sweep({"fog": FOG, "blur": BLUR}, model=f"model {i}") for i in range(3)]
    all_sections = sections(plain) + sections(
        [Evaluated(predictions, results(predictions)) for predictions in swept]
    )
    return [figure for section in all_sections for figure in section.figures]


def test_legends_of_lines_show_pieces_of_the_lines_they_name(figures):
    charts = [unit for figure in figures for unit in of_lines(figure.spec)]
    assert len(charts) >= 5
    for unit in charts:
        for channel in ("color", "strokeDash"):
            if channel in unit["encoding"]:
                legend = unit["encoding"][channel]["legend"]
                assert legend["symbolType"] == "stroke"
                # a dash has to fit into the symbol: its length is the root of its size
                dashes = unit["encoding"].get("strokeDash", {}).get("scale", {}).get("range", [[1]])
                assert legend["symbolSize"] ** 0.5 >= 1.5 * max(map(sum, dashes))


def test_no_two_names_of_a_legend_look_alike(figures):
    for figure in figures:
        for unit in of_lines(figure.spec):
            scales = {
                name: unit["encoding"][name]["scale"]
                for name in ("color", "strokeDash")
                if name in unit["encoding"]
            }
            first, *more = scales.values()
            joint = [scale for scale in more if scale["domain"] == first["domain"]]
            looks = zip(first["range"], *(scale["range"] for scale in joint), strict=True)
            assert len({json.dumps(look) for look in looks}) == len(first["domain"]), figure.name


def test_legend_symbols_carry_colour_and_dash_of_the_marks():
    """As Vega compiles it: one legend, whose strokes are of the scales that the lines are of."""
    rows = [{"x": x, "y": x, "name": name} for x in range(3) for name in "abc"]
    spec = {
        "data": {"values": rows},
        "mark": "line",
        "encoding": {
            "x": {"field": "x", "type": "quantitative"},
            "y": {"field": "y", "type": "quantitative"},
            **lines(list("abc"), "name"),
        },
    }
    compiled = vl_convert.vegalite_to_vega(spec)
    (legend,) = compiled["legends"]
    scales = {scale["name"]: scale["range"] for scale in compiled["scales"] if "range" in scale}
    assert scales[legend["stroke"]] == list(PALETTE[:3])
    assert scales[legend["strokeDash"]] == [list(dash) for dash in DASHES[:3]]
    assert legend["symbolType"] == "stroke"
    (mark,) = compiled["marks"][0]["marks"]
    encoded = mark["encode"]["update"]
    assert encoded["stroke"]["scale"] == legend["stroke"]
    assert encoded["strokeDash"]["scale"] == legend["strokeDash"]


@pytest.mark.parametrize("models", [["one"], ["one", "two", "three"]])
def test_curves_of_models_and_kinds_differ_without_colour(models):
    """In grey print: each curve has a dash and a shape that no other has, and a legend of both."""
    place = {axis: {"field": axis, "type": "quantitative"} for axis in "xy"}
    rows = [
        {"x": x, "y": x, "model": model, "kind": kind}
        for x in range(3)
        for model in models
        for kind in ("anchors", "worst frames")
    ]
    layers = draw_crossed(models, "kind", ["anchors", "worst frames"], place)
    compiled = vl_convert.vegalite_to_vega({"data": {"values": rows}, "layer": layers})
    scales = {scale["name"]: scale.get("range") for scale in compiled["scales"]}
    if len(models) == 1:
        assert len({json.dumps(dash) for dash in scales["strokeDash"]}) == 2
        return
    assert len({json.dumps(dash) for dash in scales["strokeDash"]}) == len(models)
    assert len({*scales["shape"]}) == 2
    dash_legends = [legend for legend in compiled["legends"] if "strokeDash" in legend]
    assert [legend["stroke"] for legend in dash_legends] == ["color"]
    assert [legend["shape"] for legend in compiled["legends"] if "shape" in legend] == ["shape"]


def test_colours_dashes_and_shapes_are_all_different():
    assert len({*SHAPES}) == len(PALETTE)
    assert len({*PALETTE}) == len({*DASHES}) == len(PALETTE)


# --- strips of degraded images


def strips(ranks):
    predictions = sweep(ranks)
    return failure_strips([Evaluated(predictions, results(predictions))]).exhibits


def test_thresholds_reached_at_one_level_share_a_picture():
    # ten images: at level 1 all are right, at level 2 none is
    (exhibit,) = strips({"fog": [[0] * 10, [0] * 10, [1] * 10]})
    assert [picture.title for picture in exhibit.pictures] == [
        "level 0",
        "level 2: accuracy below 90\u202f%, 50\u202f%, 10\u202f%",
    ]


def test_a_search_shows_the_image_that_fails_first_next_to_the_original():
    """Image 1 is wrong under fog from level 2, image 0 under rain from level 3."""
    ranks = {"fog": [[0, 0], [0, 0], [0, 4], [1, 1]], "rain": [[0, 0], [0, 0], [0, 0], [2, 0]]}
    whole = sweep(ranks)
    search = replace(whole, columns=tuple(c for c in whole.columns if c != "profile"))
    section = failure_strips([Evaluated(search, {})])
    fog, rain = section.exhibits
    assert [shot.sample for shot in fog.pictures] == ["01", "fog21"]
    assert [shot.sample for shot in rain.pictures] == ["00", "rain30"]
    assert [shot.right for shot in rain.pictures] == [True, False]
    assert section.lead.pictures == fog.pictures
    assert section.lead.title == "fog: wrong at level 2, the lowest level found"
    never = replace(search, stored={**search.stored, "predicted": np.zeros(len(search), dtype=int)})
    assert failure_strips([Evaluated(never, {})]) is None


def test_a_strip_without_a_failure_point_shows_the_last_level():
    (exhibit,) = strips({"fog": [[0] * 10] * 4})
    assert [picture.title for picture in exhibit.pictures] == [
        "level 0",
        "level 3, the last; never below 90\u202f%",
    ]
    assert exhibit.pictures[-1].sample.startswith("fog3")


def test_an_operator_with_fewer_levels_ends_with_its_own_last_one():
    short, long = strips({"blur": [[0] * 10] * 2, "fog": [[0] * 10] * 4})
    assert short.pictures[-1].sample.startswith("blur1")
    assert long.pictures[-1].sample.startswith("fog3")


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(0, 1), min_size=10, max_size=10), min_size=1, max_size=6))
@settings(max_examples=40)
def test_a_strip_has_no_picture_twice_and_ends_where_its_levels_or_its_thresholds_do(blocks):
    (exhibit,) = strips({"fog": [[0] * 10, *blocks]})
    samples = [picture.sample for picture in exhibit.pictures]
    assert len(set(samples)) == len(samples) >= 2
    text = " ".join(picture.title for picture in exhibit.pictures)
    least = min(10 * (10 - sum(block)) for block in blocks)
    missed = [share for share in (90, 50, 10) if share <= least]
    thresholds = {share for share in (90, 50, 10) if share > least} | {*missed[:1]}
    assert {share for share in (90, 50, 10) if f" {share}\u202f%" in text} == thresholds
    assert ("never" in text) == bool(missed) == bool(exhibit.pictures[-1].title.count("never"))
    if missed:
        assert samples[-1].startswith(f"fog{len(blocks)}")


# --- strips of unstable seconds


def strip_of(answers, **more):
    (exhibit,) = unstable_clips([Evaluated(watched(answers, **more), {})]).exhibits
    return [int(picture.sample.rpartition("/")[2]) for picture in exhibit.pictures], exhibit


def test_one_change_is_shown_from_both_sides():
    frames, exhibit = strip_of("aaaaabbbbb")
    assert frames == [3, 4, 5, 6]
    sides = [picture.lines[1].partition(", ")[2] for picture in exhibit.pictures]
    assert sides == ["", "just before a change", "just after a change", ""]


def test_the_most_certain_changes_are_shown():
    sure = np.full(10, 0.5)
    sure[[1, 2]], sure[[7, 8]] = 0.8, 0.7
    frames, _ = strip_of("aabbaabbaa", sure=sure)
    assert frames == [1, 2, 7, 8]


@pytest.mark.slow
@given(st.lists(st.integers(0, 2), min_size=2, max_size=10).filter(lambda a: len(set(a)) > 1))
def test_frames_lie_on_both_sides_of_every_change_that_is_shown(answers):
    frames, exhibit = strip_of(answers)
    assert len(set(frames)) == len(frames) == min(4, len(answers))
    count = 0
    for frame, picture in zip(frames, exhibit.pictures, strict=True):
        side = picture.lines[1]
        if "before" in side or "between" in side:
            assert answers[frame] != answers[frame + 1]
            count += frame + 1 in frames
        if "after" in side or "between" in side:
            assert answers[frame] != answers[frame - 1]
    assert count >= 1


# --- boxes on pictures


def luminance(colour):
    """The relative luminance of WCAG 2, of a colour of 0…255."""
    share = np.asarray(colour) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def contrast(first, second):
    dark, light = sorted(map(luminance, (first, second)))
    return (light + 0.05) / (dark + 0.05)


def test_labels_on_pictures_are_readable():
    assert all(contrast(INK, ground) >= 4.5 for ground in COLOURS.values())
    # a thumbnail is 480 pixels long, of which a phone shows 330
    height = cv2.getTextSize("A", FONT, LETTERS, 1)[0][1]
    assert height * 330 / 480 >= 9


@given(
    st.lists(st.tuples(st.integers(-20, 500), st.integers(-20, 400)), min_size=1, max_size=6),
    st.sampled_from([(360, 480), (1080, 1920), (100, 120)]),
)
def test_labels_lie_inside_the_picture_and_not_over_each_other(corners, shape):
    unit = max(max(shape) / 480, 1.0)
    marks = [Mark("right", (x, y, x + 50, y + 50), "car 0.91") for x, y in corners]
    places = label_places(shape, marks, unit)
    room = shape[0] // (places[0][3] - places[0][1] + 1)
    for x0, y0, x1, y1 in places:
        assert (x0, y0) >= (0, 0)
        assert y1 <= shape[0]
        assert x1 <= shape[1] or shape[1] < x1 - x0
    if all(y <= 0 for _, y in corners) and room >= len(corners):
        for i, place in enumerate(places):
            for other in places[:i]:
                apart = place[0] >= other[2] or other[0] >= place[2]
                assert apart or place[1] >= other[3] or other[1] >= place[3]


def test_boxes_of_mistakes_are_dashed_and_others_are_whole():
    image = np.full((200, 300, 3), 120, dtype=np.uint8)
    for kind, whole in (("truth", True), ("right", True), ("wrong", False)):
        marked_image = draw_marks(image, [Mark(kind, (20, 30, 260, 170), "")])
        side = (marked_image[30, 25:255] == COLOURS[kind]).all(axis=1)
        assert side.all() == whole
        assert side.any()
    assert (image == 120).all()


def test_labels_do_not_cover_small_images():
    image = np.full((64, 48, 3), 120, dtype=np.uint8)
    large, (mark,) = enlarge(image, [Mark("wrong", (6, 8, 40, 60), "b 0.90")])
    assert large.shape == (480, 360, 3)
    assert mark.box == (45, 60, 300, 450)
    ((x0, y0, x1, y1),) = label_places(large.shape[:2], [mark], 1.0)
    assert (x1 - x0) * (y1 - y0) < 0.05 * 480 * 360
    same, marks = enlarge(large, [mark])
    assert same is large
    assert marks == (mark,)
    assert enlarge(image, [])[0] is image


def test_names_from_right_to_left_are_drawn_in_their_order():
    """OpenCV draws each letter to the right of the one before."""
    image = np.full((100, 480, 3), 120, dtype=np.uint8)
    mark = Mark("right", (20, 60, 260, 90), "אבג 0.9")
    expected = draw_marks(image, [replace(mark, text="")])
    ((x0, y0, x1, y1),) = label_places(image.shape[:2], [mark], 1.0)
    cv2.rectangle(expected, (x0, y0), (x1, y1), COLOURS["right"], cv2.FILLED)
    at = (x0 + 3, y1 - 5)
    cv2.putText(expected, "גבא 0.9", at, FONT, LETTERS, INK, 1, cv2.LINE_AA)
    np.testing.assert_array_equal(draw_marks(image, [mark]), expected)
