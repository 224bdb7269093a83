"""Sections over pm-sets: worked by hand, against references, and beside the papers' tables."""

import csv
import json
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
import vl_convert
from hand_tables import HAND, as_predictions, random_table, table

from steadyeye import evaluate
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.review_filter import select_reviewed
from steadyeye.core.spec import parse
from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.core.types import Evaluated
from steadyeye.data.images import image_file
from steadyeye.metrics.accuracy import accuracy
from steadyeye.metrics.conditional_robustness import conditional_robustness
from steadyeye.metrics.pm_k import pm_k
from steadyeye.report.analyses import frame_rates as rates
from steadyeye.report.analyses import frame_types as types
from steadyeye.report.analyses import review_impact as review
from steadyeye.report.analyses.conditional_robustness import conditional_robustness as beside
from steadyeye.report.analyses.offset_errors import offset_errors
from steadyeye.report.analyses.static_transfer import static_transfer
from steadyeye.runner.collect import results

SPACE = "\u202f"


@pytest.fixture(scope="module")
def released(test_data):
    metadata = test_data / "imagenet_vid_robust" / "metadata"
    sets = json.loads((metadata / "pmsets.json").read_text())
    return sets, json.loads((metadata / "labels.json").read_text())


def sets(right, k=None, **tags):
    """Sets of two classes, each frame labelled 0: `right` maps (set, offset) to right or wrong."""
    keys = list(right)
    predictions = table(
        [[1, 0] if right[key] else [0, 1] for key in keys],
        [[0]] * len(keys),
        [group for group, _ in keys],
        [offset for _, offset in keys],
    )
    more = {name: np.asarray(values) for name, values in tags.items()}
    columns = (*predictions.columns, *more)
    tags = {**predictions.tags, **more}
    return replace(predictions, columns=columns, tags=tags, fingerprint="same")


def evaluated(predictions, model="m"):
    predictions = replace(predictions, model=model)
    return Evaluated(predictions, results(predictions))


def rows(section, at=0):
    return [list(row) for row in section.tables[at].rows]


def share(text):
    return float(text.split(SPACE)[0].split(" ")[0]) / 100


# a: right, breaks at +1; b: right throughout; c: anchor wrong, +1 wrong
THREE = {(name, offset): True for name in "ab" for offset in (-1, 0, 1, 2)}
THREE |= {("a", 1): False, ("c", 0): False, ("c", 1): False}


def test_offset_errors_by_hand():
    # at −1: 0 of 2; at +1: a's frame of 3, for c's anchor is wrong itself; at +2: 0 of 2
    section = offset_errors([evaluated(sets(THREE))])
    assert [row[:4] for row in rows(section)] == [
        ["−2", "m", "0", "—"],
        ["−1", "m", "2", f"0.0{SPACE}%"],
        ["+1", "m", "3", f"33.3{SPACE}%"],
        ["+2", "m", "2", f"0.0{SPACE}%"],
    ]
    low, high = clopper_pearson(1, 3)
    assert rows(section)[2][4] == f"{low * 100:.1f}–{high * 100:.1f}{SPACE}%"
    # one away: 1 of 5; two away: 0 of 2
    assert f"20.0{SPACE}%" in section.text[0]
    # 1 of 5 frames of two videos: the interval holds 0, so the title asks
    assert section.title == "How does the error rate change with the distance from the anchor?"


def test_offset_errors_over_all_models_count_a_frame_once_a_model():
    other = {**THREE, ("c", 0): True, ("b", 2): False}
    section = offset_errors([evaluated(sets(THREE)), evaluated(sets(other), "n")])
    lines = {(row[0], row[1]): row[2:4] for row in rows(section)}
    # +1: a's frame twice and c's once, of 3 frames × 2; +2: b's once of 2 × 2
    assert lines["+1", "all models"] == ["6", f"50.0{SPACE}%"]
    assert lines["+2", "all models"] == ["4", f"25.0{SPACE}%"]
    assert lines["+1", "n"] == ["3", f"66.7{SPACE}%"]


def test_models_on_other_samples_are_not_added_up():
    other = replace(sets(THREE), fingerprint="other")
    section = offset_errors([evaluated(sets(THREE)), evaluated(other, "n")])
    assert {row[1] for row in rows(section)} == {"m", "n"}
    assert static_transfer([evaluated(sets(THREE)), evaluated(other, "n")]) is None


def test_conditional_robustness_by_hand():
    # right anchors a and b: at ±1 three of four frames, at ±2 two of two
    robustness = conditional_robustness(sets(THREE))
    assert [(cell.value, cell.n) for cell in robustness.cells] == [(3 / 4, 4), (1, 2)]
    assert robustness.name == "conditional_robustness(k=2)"
    assert (robustness.value, robustness.n) == (1, 2)
    assert conditional_robustness(sets(THREE), k=1).value == 3 / 4
    section = beside([evaluated(sets(THREE))])
    # of two right anchors one survives distances 1 and 2
    assert [row[5].split(" ")[0] for row in rows(section)] == [f"50.0{SPACE}%"] * 2
    assert f"100.0{SPACE}%" in section.text[0]
    # a breaks at +1, and both of the frames two away are right
    assert section.title == "1 of 1 set that breaks within ±2 is right on the frames exactly 2 away"


def test_conditional_robustness_without_a_right_anchor_has_no_value():
    robustness = conditional_robustness(sets({("a", 0): False, ("a", 1): True}))
    assert (robustness.value, robustness.n) == (None, 0)
    assert conditional_robustness(sets({("a", 0): True})).cells == ()
    assert beside([evaluated(sets({("a", 0): True}))]) is None


def test_the_same_conditional_robustness_hides_another_pm_k():
    """Shankar et al., Figure 9: errors in a few videos at all distances, or one in each video."""
    k, videos = 5, 10
    frames = [(f"v{v}", o) for v in range(videos) for o in range(-k, k + 1)]
    # at each distance one frame on either side is wrong, of ten videos each
    few = {(v, o): not (v == "v0" and o) for v, o in frames}
    spread = {(v, o): not (o and int(v[1]) == (abs(o) - 1) * 2 + (o > 0)) for v, o in frames}
    first, second = sets(few), sets(spread)
    cells = [[c.value for c in conditional_robustness(t).cells] for t in (first, second)]
    assert cells[0] == cells[1] == [0.9] * k
    assert pm_k(first).value == 0.9
    assert pm_k(second).value == 0.0
    assert accuracy(first).value == accuracy(second).value == 1


def test_static_transfer_by_hand():
    """Three models on two sets: a's +1 breaks two of them, b's ±2 one each."""
    names = [("a", -1), ("a", 0), ("a", 1), ("b", -2), ("b", 0), ("b", 2)]

    def model(*wrong):
        return sets({name: name not in wrong for name in names})

    models = (model(("a", 1), ("b", -2)), model(("a", 1)), model(("a", -1), ("b", 2)))
    section = static_transfer([evaluated(m, f"{i}") for i, m in enumerate(models, 1)])
    shares = {row[0]: [share(cell) for cell in row[2:]] for row in rows(section)}
    # the fixed set: a's +1 (two models) and b's −2 (a tie with +2: the earlier)
    # without 1: a's −1 ties with +1: the earlier, right; b's +2, right
    assert shares["1"] == [1, 1, 0, 0]
    # without 2: a's −1 before +1, right; b's −2 before +2, right
    assert shares["2"] == [1, 1, 0.5, 0.5]
    # without 3: a's +1, right; b's −2, right
    assert shares["3"] == [1, 1, 1, 0]
    # two anchors show nothing
    assert section.title == "Do models break on the same frames?"
    # means of the rows: 3/3 of the anchors, 3/3 of the others' neighbours, 0.5/3 of all
    line = "does not drop on these neighbours. The drop from 100.0\u202f% to 16.7\u202f% is on"
    assert line in section.text[0]


def test_static_transfer_titles_assert_with_enough_anchors():
    """Of 40 anchors half break: on the same frame for both models, or each on its own."""

    def model(side):
        return sets({(f"g{i}", o): i % 2 == 0 or o != side for i in range(40) for o in (-1, 0, 1)})

    def title(*sides):
        return static_transfer([evaluated(model(s), f"{i}") for i, s in enumerate(sides)]).title

    assert title(1, 1) == ("Most of the drop is on frames that break other models too")
    assert title(-1, 1) == "Most of the drop is on frames that break one model only"


def test_static_transfer_of_models_that_share_their_errors():
    wrong = {("a", 0): True, ("a", 1): False, ("b", 0): True, ("b", 1): True, ("b", -1): False}
    section = static_transfer([evaluated(sets(wrong), name) for name in "12"])
    assert {tuple(map(share, row[2:])) for row in rows(section)} == {(1, 0, 0, 0)}
    # the neighbours share all of it, and nothing is left for frames of one model
    assert section.text[0].endswith(" share the drop from 100.0\u202f% to 0.0\u202f%.")
    assert section.title == "Do models break on the same frames?"


def test_static_transfer_shares_no_drop_where_the_neighbours_are_right_more_often():
    """Each model breaks on its own side of a, and is right around the wrong anchor b."""

    def model(side):
        right = {("a", o): o != side for o in (-1, 0, 1)}
        return sets({**right, **{("b", o): o != 0 for o in (-1, 0, 1)}})

    section = static_transfer([evaluated(model(side), f"{side}") for side in (-1, 1)])
    shares = {tuple(map(share, row[2:])) for row in rows(section)}
    assert {item[:2] for item in shares} == {(0.5, 1)}
    assert {item[3] for item in shares} == {0}
    line = "Accuracy does not drop on these neighbours. The drop from 50.0\u202f% to 0.0"
    assert line in section.text[0]


def test_static_transfer_leaves_out_what_one_model_could_not_read():
    right = {("a", 0): True, ("a", 1): False, ("a", 2): True, ("b", 0): True}
    blind = replace(sets(right), errors=np.array(["", "corrupt", "", ""]))
    section = static_transfer([evaluated(sets(right)), evaluated(blind, "n")])
    # a's +1 is gone, +2 is right; b has no neighbour
    assert [row[1:3] for row in rows(section)] == [["1", f"100.0{SPACE}% (2.5–100.0{SPACE}%)"]] * 2
    assert share(rows(section)[0][4]) == 1


def test_static_transfer_needs_two_models():
    assert static_transfer([evaluated(sets(THREE))]) is None


TYPES = ["I", "P", "B", "P", "P", "P", "B", "B", "P", "P"]


def test_frame_types_by_hand():
    section = types.frame_types([evaluated(sets(THREE, frame_type=TYPES))])
    own = [row for row in rows(section) if row[1] == "m"]
    # all: 2 of 3 right, 1 of 3 survives; without B: a's +1 and b's ±1 … leave, a survives;
    # without P all anchors leave: none is left
    assert [[row[0], row[2], row[3].split(" (")[0], row[4].split(" (")[0]] for row in own] == [
        ["all frames", "3", f"66.7{SPACE}%", f"33.3{SPACE}%"],
        ["without I-frames", "3", f"66.7{SPACE}%", f"33.3{SPACE}%"],
        ["without P-frames", "—", "—", "—"],
        ["without B-frames", "3", f"66.7{SPACE}%", f"66.7{SPACE}%"],
    ]
    # three anchors show nothing
    assert section.title == "Does one frame type cause the drop?"


@pytest.mark.parametrize(
    ("broken_by", "title"),
    [
        ("B", "Most of the drop disappears without B-frames"),
        ("both", "Most of the drop remains without any one frame type"),
    ],
)
def test_the_title_tells_whether_one_type_makes_the_drop(broken_by, title):
    offsets, kinds = range(3), {0: "I", 1: "P", 2: "B"}
    right = {
        (f"g{i}", o): i % 2 == 0 or o not in ([2] if broken_by == "B" else [1, 2])
        for i in range(100)
        for o in offsets
    }
    tags = [kinds[o] for _, o in right]
    # the anchor is an I-frame: without them no set is left, and nothing to compare
    section = types.frame_types([evaluated(sets(right, frame_type=tags))])
    assert section.title == title


def test_frame_types_that_do_not_occur_are_reported():
    section = types.frame_types([evaluated(sets(THREE, frame_type=["P"] * 10))])
    assert "The data have no I, no B-frames." in section.text[0]
    assert [row[0] for row in rows(section) if row[1] == "m"] == ["all frames", "without P-frames"]


def test_frame_rates_by_hand():
    fps = [25.0] * 4 + [30000 / 1001] * 4 + [24.9999] * 2
    section = rates.frame_rates([evaluated(sets(THREE, fps=fps))])
    own = [row for row in rows(section) if row[1] == "m"]
    assert [[row[0], row[2], share(row[3]), share(row[4]), share(row[5])] for row in own] == [
        ["25 fps", "2", 0.5, 0, 0.5],
        ["29 fps", "1", 1, 1, 0],
    ]
    assert rates.frame_rates([evaluated(sets(THREE, fps=[25.0] * 10))]) is None


def reference(test_data, name):
    with (test_data.parent / "reference" / f"published_{name}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("frame_type", types.PUBLISHED),
        ("fps", rates.PUBLISHED),
        ("review_impact", review.PUBLISHED),
    ],
)
def test_the_published_tables_are_the_published_tables(test_data, name, published):
    expected, printed = reference(test_data, name), []
    for row, loss in zip(expected, published.losses, strict=True):
        original, perturbed, drop = (float(row[key]) for key in ("original", "perturbed", "drop"))
        assert (loss.original.value, loss.perturbed.value) == (original / 100, perturbed / 100)
        assert loss.drop.value * 100 == pytest.approx(original - perturbed)
        printed.append(round(original - perturbed - drop, 1))
    # two drops of Table 4 are not the difference of what is printed beside them
    assert printed == ([0, 0.2, 0, -0.7] if name == "review_impact" else [0] * len(expected))


def test_the_intervals_of_table_8_are_clopper_pearson_over_its_videos(test_data):
    for row in reference(test_data, "fps"):
        n = int(row["videos"])
        for end in ("original", "perturbed"):
            hits = round(float(row[end]) / 100 * n)
            ends = np.round(100 * np.array(clopper_pearson(hits, n)), 1).tolist()
            assert ends == [float(row[f"{end}_low"]), float(row[f"{end}_high"])]
            assert round(100 * hits / n, 1) == float(row[end])


def judged():
    """a: +1 rejected and wrong; b: fine; c: the anchor rejected, so its right neighbour leaves."""
    names = [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("c", 0), ("c", 1)]
    wrong = {("a", 1), ("c", 0)}
    accepted = [int(name not in wrong) for name in names]
    return sets({name: name not in wrong for name in names}, accepted=accepted)


def test_metrics_keep_to_what_was_accepted():
    accepted = select_reviewed(judged())
    assert list(accepted.ids) == ["s0", "s2", "s3", "s4"]
    assert (accuracy(accepted).value, pm_k(accepted).value, pm_k(accepted).n) == (1, 1, 2)
    assert accepted.candidates is not None
    assert pm_k(accepted.candidates).value == 1 / 3
    assert "3 of 7 candidate frames left out: not accepted by review" in accepted.notes
    assert select_reviewed(sets(THREE)).candidates is None


def test_review_impact_by_hand():
    section = review.review_impact([evaluated(select_reviewed(judged()))])
    own = [row for row in rows(section) if row[1] == "m"]
    assert [row[:3:2] for row in own] == [["without review", "3"], ["with review", "2"]]
    assert list(map(share, own[0][3:])) == pytest.approx([0.667, 0.333, 0.333])
    assert list(map(share, own[1][3:])) == [1, 1, 0]
    assert rows(section, 1) == [
        ["anchors", "3", "2", f"66.7{SPACE}%"],
        ["neighbours", "4", "2", f"50.0{SPACE}%"],
    ]
    # 1 of 3 before and 0 of 2 after: the intervals allow anything
    assert section.title == "How much of the drop remains after the review?"


@pytest.mark.parametrize(
    ("rejected", "title"),
    [
        (True, "The review removes most of the drop"),
        (False, "Most of the drop remains after the review"),
    ],
)
def test_the_review_s_title_with_enough_anchors(rejected, title):
    """Half of 100 anchors break, on a frame that the review rejects, or on one that it keeps."""
    keys = [(f"g{i}", o) for i in range(100) for o in (0, 1, 2)]
    right = {(g, o): o != 1 or int(g[1:]) % 2 == 0 for g, o in keys}
    accepted = [o != (1 if rejected else 2) for _, o in keys]
    section = review.review_impact([evaluated(select_reviewed(sets(right, accepted=accepted)))])
    assert section.title == title


def test_a_review_that_rejected_nothing_is_no_section():
    accepted = select_reviewed(sets(THREE, accepted=[1] * 10))
    assert review.review_impact([evaluated(accepted)]) is None


def test_offset_errors_draw_a_second_line_without_the_review():
    section = offset_errors([evaluated(select_reviewed(judged()))])
    lines = {(row[0], row[1]): row[2:4] for row in rows(section)}
    # with it b's frame alone is one away; without it a's, which is wrong, and c's
    assert lines["+1", "m"] == ["1", f"0.0{SPACE}%"]
    assert lines["+1", "m, without review"] == ["3", f"33.3{SPACE}%"]


def test_another_value_of_accepted_is_refused():
    with pytest.raises(UsageError, match="is '2'; write 1 or 0"):
        select_reviewed(sets(THREE, accepted=[2] + [1] * 9))


def naive(models):
    """Offset errors, conditional robustness and the static set from their definitions alone."""
    table = models[0]
    offset = table.tags["offset"]
    anchor = {table.groups[i]: i for i in np.flatnonzero(offset == 0)}
    errors, conditional, near = defaultdict(list), defaultdict(list), defaultdict(list)
    for i in np.flatnonzero(offset):
        a = anchor[table.groups[i]]
        for m in models:
            errors[int(offset[i])].append(bool(m.right[a] and not m.right[i]))
        if table.right[a]:
            conditional[int(abs(offset[i]))].append(bool(table.right[i]))
        wrong = [not m.right[i] for m in models]
        near[a].append((-sum(wrong), abs(offset[i]), offset[i], wrong))
    static = np.array([min(candidates, key=lambda c: c[:3])[3] for candidates in near.values()])

    def without(m):
        """The share right of a model on the frames that are worst for the others."""
        worst = (min(e, key=lambda c: (c[0] + c[3][m], *c[1:3])) for e in near.values())
        return np.mean([not frame[3][m] for frame in worst])

    others = [without(m) for m in range(len(models))]
    return errors, conditional, 1 - static.mean(axis=0), others


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_tables_over_the_released_metadata(released, seed):
    frames = as_predictions(released, random_table(released, 0))
    frames = replace(frames, fingerprint="released")
    models = []
    for number in range(3):
        scores = random_table(released, 100 + 3 * seed + number)
        models.append(replace(frames, scores=np.stack([scores[id_] for id_ in frames.ids])))
    errors, conditional, static, others = naive(models)
    evaluated_models = [Evaluated(replace(m, model=str(i)), {}) for i, m in enumerate(models)]

    values = offset_errors(evaluated_models).figures[0].spec["data"]["values"]
    points = {v["offset"]: (v["value"], v["frames"]) for v in values if v["line"] == "all models"}
    assert points == {o: (np.mean(e), len(e)) for o, e in errors.items()}

    cells = conditional_robustness(models[0]).cells
    expected = [(np.mean(conditional[d]), len(conditional[d])) for d in range(1, 11)]
    assert [(c.value, c.n) for c in cells] == expected

    values = static_transfer(evaluated_models).figures[0].spec["data"]["values"]
    points = {(v["model"], v["frames"]): v["value"] for v in values}
    assert [points[str(i), "worst for all models"] for i in range(3)] == pytest.approx(list(static))
    assert [points[str(i), "worst for the other models"] for i in range(3)] == pytest.approx(others)
    for i in range(3):
        own = points[str(i), "worst for this model (pm-k)"]
        assert own <= points[str(i), "worst for all models"]


def full(order=range(10)):
    """Two models on reviewed sets that carry every tag."""
    tags = {"frame_type": TYPES, "fps": [25.0] * 4 + [30.0] * 6, "accepted": [1, 1, 1, 0] + [1] * 6}
    tags = {name: [values[i] for i in order] for name, values in tags.items()}
    models, keys = {"one": THREE, "two <b>": {**THREE, ("b", 2): False}}, list(THREE)
    return [
        evaluated(select_reviewed(sets({keys[i]: right[keys[i]] for i in order}, **tags)), name)
        for name, right in models.items()
    ]


ALL = (
    offset_errors,
    beside,
    static_transfer,
    types.frame_types,
    rates.frame_rates,
    review.review_impact,
)


@pytest.mark.parametrize("analysis", ALL, ids=lambda a: a.__name__)
def test_sections_repeat_change_nothing_and_draw(analysis):
    models = full()
    before = models[0].predictions.scores.copy()
    section = analysis(models)
    assert analysis(models) == section
    np.testing.assert_array_equal(models[0].predictions.scores, before)
    assert section.text
    assert section.tables
    (figure,) = section.figures
    svg = vl_convert.vegalite_to_svg(json.loads(json.dumps(figure.spec)))
    assert "two &lt;b&gt;" in svg
    assert figure.alt


@pytest.mark.parametrize("analysis", ALL, ids=lambda a: a.__name__)
def test_the_order_of_the_rows_does_not_count(analysis):
    other = full(np.random.default_rng(0).permutation(10))
    assert analysis(other).tables == analysis(full()).tables


def test_empty_tables_make_no_section():
    empty = table(np.zeros((0, 2)), [], np.zeros(0, dtype=str), np.zeros(0, dtype=int))
    assert conditional_robustness(empty).value is None
    for analysis in ALL[:3]:
        assert analysis([Evaluated(empty, {}), Evaluated(empty, {})]) is None


def test_the_hand_table_of_the_metrics():
    # anchors a and b right: a's ±1 right, b's +1 right and +2 wrong
    robustness = conditional_robustness(table(**HAND))
    assert [(cell.value, cell.n) for cell in robustness.cells] == [(1, 3), (0, 1)]


@pytest.mark.parametrize("failing", ["anchors", "all"])
def test_a_run_whose_anchors_all_failed_has_a_report(failing, tmp_path):
    """One set is left out after the other, until none is there to speak of."""
    for number in range(9):
        path = tmp_path / "clips" / f"{number % 3}" / f"{number // 3}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image_file.encode(np.full((8, 8, 3), 20 * number, np.uint8), ".png"))
    spec = f"frames(path='{tmp_path / 'clips'}', labels='dog', k=2)"
    source = plugins.build("sources", parse(spec))
    anchors = [i for i, member in enumerate(source.members) if member.offset == 0]
    greys = {int(source[i].image()[0, 0, 0]) for i in anchors}

    def model(images):
        lost = [failing == "all" or int(image[0, 0, 0]) in greys for image in images]
        return np.where(np.array(lost)[:, None], np.nan, [[0.2, 0.8]]).astype(np.float32)

    run = evaluate(model, spec, classes=["cat", "dog"], on_error="skip", out=tmp_path / "run")
    assert run.pm_k(2).value is None
    assert "left out: the anchor has no prediction" in " ".join(run.pm_k(2).notes)
    for some in (run, run.measure()):
        assert "left out" in some.report(tmp_path / "report.html").read_text()
