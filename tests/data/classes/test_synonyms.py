"""Which words mean one class, and which do not."""

from collections import defaultdict

import pytest

from steadyeye.data.classes.class_lists import LISTS, shipped_classes
from steadyeye.data.classes.synonyms import fold_class, match_class

SAME = [
    ("sofa", "couch"),
    ("Settee", "sofas"),
    ("lounge", "couch"),
    ("aeroplane", "airplanes"),
    ("tvmonitor", "TV"),
    ("motorbike", "motorcycle"),
    ("hot-dog", "Hot Dog"),
    ("hotdogs", "hot_dog"),
    ("wine-glasses", "wine glass"),
    ("fire\u2011hydrant", "fire hydrant"),
    ("mouse", "computer mouse"),
    ("knives", "knife"),
    ("buses", "bus"),
    ("boxes", "box"),
    ("horses", "horse"),
    ("vases", "vase"),
    ("cookies", "cookie"),
    ("berries", "berry"),
    ("tomatoes", "tomato"),
    ("canoes", "canoe"),
    ("shoes", "shoe"),
    ("caches", "cache"),
    ("axes", "ax"),
    ("mice", "mouse"),
    ("scissor", "scissors"),
    ("snow globes", "snow-globe"),  # in no list of ours, and not in WordNet's part here
]
OTHER = [
    ("glasses", "glass"),  # spectacles
    ("coach", "bus"),  # its fifth meaning
    ("crane", "heron"),
    ("sunglass", "sunglasses"),  # two classes of ILSVRC
    ("cap", "cape"),
    ("tap", "tape"),
    ("kit", "kite"),
    ("hot dog", "dog"),
    ("bus", "bush"),
    ("gas", "ga"),
    ("dress", "dres"),
    ("type 1-1", "type 11"),
    ("dog", "beagle"),
    ("?", "!"),
    ("c", "c++"),
]


@pytest.mark.parametrize(("name", "other"), SAME)
def test_synonyms_match_one_class(name, other):
    assert fold_class(name) == fold_class(other)
    assert match_class(name, ["zebra", other]) == other
    assert match_class(other, ["zebra", name]) == name


@pytest.mark.parametrize(("name", "other"), OTHER)
def test_words_for_different_classes_do_not_match(name, other):
    assert fold_class(name) != fold_class(other)
    assert match_class(name, ["zebra", other]) == name


@pytest.mark.parametrize("name", LISTS)
def test_no_two_classes_of_a_shipped_list_are_one(name):
    classes = shipped_classes(name).names
    by_key = defaultdict(set)
    for own in classes:
        by_key[fold_class(own)].add(own)
    assert [same for same in by_key.values() if len(same) > 1] == []
    assert [match_class(own, classes) for own in classes] == list(classes)


def test_a_word_for_several_classes_of_a_list_is_none_of_them():
    assert match_class("human", ["person", "pedestrian"]) == "human"
    assert match_class("Pedestrian", ["person", "pedestrian"]) == "pedestrian"
    assert match_class("BEAR", ["Bear", "bear", "dog"]) == "BEAR"
    assert match_class("bear", ["Bear", "bear", "dog"]) == "bear"


def test_the_list_says_which_meaning_a_word_has():
    coco = shipped_classes("coco").names
    assert match_class("computer mouse", coco) == "mouse"
    assert match_class("sofa", coco) == "couch"
    assert match_class("settees", shipped_classes("voc").names) == "sofa"
