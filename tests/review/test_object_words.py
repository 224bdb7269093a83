"""Names of an object: other words for one class are the same answer."""

import json

import pytest
from review_boxes import FINE, Boxes, write

from steadyeye.data.annotations import review_set
from steadyeye.review.interchange.coco import export_coco
from steadyeye.review.protocol.objects import RIGHT, check_object, find_object
from steadyeye.review.results import agreement, status
from steadyeye.review.results.verdicts import judge_images
from steadyeye.review.sampling.sampling import sample_boxes
from steadyeye.review.workflow import quality

COUCH, VASE = "couch", "wine glass"


@pytest.fixture
def detected(tmp_path):
    """A set of two pictures: a detector says `couch` of one object, `wine glass` of the other.

    The data says `chair` of both.
    """
    boxes = ((0, COUCH), (1, VASE))
    content = {
        "images": [{"id": n, "file_name": f"in/{n}"} for n in range(2)],
        "categories": [{"id": n, "name": name} for n, name in enumerate((COUCH, VASE, "tv"))],
        "annotations": [
            {"id": f"b{n}", "image_id": n, "category_id": n, "bbox": [2, 3, 14, 20]}
            | {"score": 0.9, "annotated": "chair"}
            for n, _ in boxes
        ],
    }
    sample_boxes(*write(tmp_path, content, ["jpg"] * 2))
    return review_set.read(tmp_path / "set")


def answer(review, words):
    """Each person names the object of picture 0 by their word, and cannot tell the other."""
    for number, word in enumerate(words):
        review.everything("classification", name_couch(word), number)


def name_couch(word):
    return lambda payload: (
        {**FINE, "object": word} if COUCH in payload["choices"] else {"object": None}
    )


def outcome(review):
    with review.db.reading() as c:
        verdicts = judge_images(c, review.folder, review.plan).values()
    return {k: v for verdict in verdicts for k, v in [*verdict.rejected.items()]}, {
        k: v for verdict in verdicts for k, v in verdict.right.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("sofa", "Couch", "settees", "chair", "tv"),
        ("couches", "LOUNGE", "sofas", "bed", None),
        ("chair", "couch", "sofa", "bed", "Sofa"),
    ],
)
def test_synonyms_of_the_detectors_class_confirm_it(detected, words, tmp_path):
    review = Boxes(detected, 5, stages={"classification": 5})
    answer(review, words)
    rejected, right = outcome(review)
    assert right == {"b0": COUCH}
    assert set(rejected) == {"b1"}
    with review.db.reading() as c:
        export_coco(c, detected, review.plan, tmp_path / "out")
        reasons = status.summarise(c, detected, review.plan)["table"][0]["reasons"]
    exported = json.loads((tmp_path / "out" / "annotations.json").read_text())
    assert exported["annotations"] == exported["confirmed"] == []
    assert [(b["id"], b["true_class"]) for b in exported["detector_was_right"]] == [("b0", COUCH)]
    assert reasons[RIGHT] == 1


def test_synonyms_of_a_third_class_count_as_one_answer(detected):
    """Three say lorry or truck, which is in no list of the set: that is the majority's class."""
    review = Boxes(detected, 5, stages={"classification": 5})
    answer(review, ("lorry", "couch", "Trucks", "sofa", "motor-truck"))
    with review.db.reading() as c:
        verdicts = judge_images(c, review.folder, review.plan).values()
    assert {k: v for verdict in verdicts for k, v in verdict.confirmed.items()} == {"b0": "lorry"}


def test_another_class_stays_another(detected):
    review = Boxes(detected, 5, stages={"classification": 5})
    answer(review, ("couch", "sofa", "armchair", "bench", "bed"))
    rejected, right = outcome(review)
    assert (set(rejected), right) == ({"b0", "b1"}, {})
    assert rejected["b0"] == "no class has a majority"


def test_reviewers_agree_who_use_other_words(detected):
    review = Boxes(detected, 2, stages={"classification": 2})
    answer(review, ("lorry", "Trucks"))
    with review.db.reading() as c:
        measured = agreement.measure_agreement(c, ["classification"], {})[0]
    assert (measured.alpha.value, measured.alpha.n) == (1.0, 2)
    other = [check_object({**FINE, "object": name}, ()) for name in ("lorry", "bus")]
    assert quality.fold_answer("classification", other[0]) != quality.fold_answer(
        "classification", other[1]
    )


def test_a_gold_question_is_right_in_other_words(detected):
    gold = {"every": 1, "answers": {"classification": {"b0": {**FINE, "object": "truck"}}}}
    review = Boxes(detected, 2, stages={"classification": 1}, gold=gold)
    answer(review, ("Lorries", "bus"))
    with review.db.reading() as c:
        marks = [quality.list_marks(c, review.who(number).id) for number in (0, 1)]
    assert marks == [[True], [False]]


def test_choices_in_words_for_one_class_are_one(tmp_path):
    content = {
        "images": [{"id": 0, "file_name": "in/0"}],
        "categories": [{"id": 1, "name": COUCH}],
        "annotations": [
            {"id": "b", "image_id": 0, "category_id": 1, "bbox": [2, 3, 14, 20]}
            | {"score": 0.9, "annotated": "sofa"}
        ],
    }
    sample_boxes(*write(tmp_path, content, ["jpg"]))
    review = Boxes(review_set.read(tmp_path / "set"), stages={"classification": 1})
    (item,) = review.next("classification")
    assert item.payload["choices"] == [COUCH]


def test_the_majority_is_the_same_in_any_order():
    words = ("lorry", "bus", "Trucks", "bus", "motor truck")
    for first in range(5):
        turned = [
            check_object({**FINE, "object": name}, ("bus", "truck"))
            for name in (*words[first:], *words[:first])
        ]
        assert find_object(turned) == ({"object": "truck", "listed": True}, "")


def test_reviewers_who_differ_on_one_criterion_disagree(detected):
    """Both name a lorry, one calls it blurry; neither can tell the other: 1 − 0.5 ÷ (10 ÷ 12)."""
    review = Boxes(detected, 2, stages={"classification": 2})
    for number, blurry in enumerate((False, True)):

        def judge(payload, blurry=blurry):
            reply = name_couch("lorry")(payload)
            return {**reply, "blurry": blurry} if reply["object"] else reply

        review.everything("classification", judge, number)
    with review.db.reading() as c:
        measured = agreement.measure_agreement(c, ["classification"], {})[0]
    assert (measured.alpha.value, measured.alpha.n) == (pytest.approx(0.4), 2)
