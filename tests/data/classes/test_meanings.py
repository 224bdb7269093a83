"""Classes are matched by meaning: VOC, COCO, LVIS, Open Images, YTBB, VID-30, BDD, KITTI."""

import csv
import json

import pytest
from whole_runs import Watcher

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes
from steadyeye.data.classes import class_mapping, meanings, wordnet
from steadyeye.data.classes.class_lists import LISTS, classes_of_names, from_names, shipped_classes
from steadyeye.report.build import document
from steadyeye.runner.job import Job
from steadyeye.runner.run import run
from steadyeye.runner.validate import check

# written from the lists' own documentation: each of VOC's 20 and what COCO calls it
VOC_IN_COCO = """
aeroplane=airplane, bicycle=bicycle, bird=bird, boat=boat, bottle=bottle, bus=bus, car=car, cat=cat,
chair=chair, cow=cow, diningtable=dining table, dog=dog, horse=horse, motorbike=motorcycle,
person=person, pottedplant=potted plant, sheep=sheep, sofa=couch, train=train, tvmonitor=tv
"""
YTBB_IN_COCO = """
person=person, bird=bird, bicycle=bicycle, boat=boat, bus=bus, bear=bear, cow=cow, cat=cat,
giraffe=giraffe, potted plant=potted plant, horse=horse, motorcycle=motorcycle, knife=knife,
airplane=airplane, skateboard=skateboard, train=train, truck=truck, zebra=zebra, toilet=toilet,
dog=dog, elephant=elephant, umbrella=umbrella, car=car
"""
VID_IN_COCO = """
airplane=airplane, bear=bear, bicycle=bicycle, bird=bird, bus=bus, car=car, cattle=cow, dog=dog,
domestic_cat=cat, elephant=elephant, horse=horse, motorcycle=motorcycle, sheep=sheep, train=train,
watercraft=boat, zebra=zebra
"""
BDD_IN_COCO = """
pedestrian=person, car=car, truck=truck, bus=bus, train=train, motorcycle=motorcycle,
bicycle=bicycle, traffic light=traffic light, traffic sign=stop sign
"""
OLD_BDD = "bike, bus, car, motor, person, rider, traffic light, traffic sign, train, truck"
KITTI_IN_COCO = "Car=car, Truck=truck, Pedestrian=person"
# how LVIS 1.0 spells COCO's 80; it has no hot dog and no potted plant
LVIS = """
person, bicycle, car_(automobile), motorcycle, airplane, bus_(vehicle), train_(railroad_vehicle),
truck, boat, traffic_light, fireplug, stop_sign, parking_meter, bench, bird, cat, dog, horse, sheep,
cow, elephant, bear, zebra, giraffe, backpack, umbrella, handbag, necktie, suitcase, frisbee, ski,
snowboard, kite, baseball_bat, baseball_glove, skateboard, surfboard, tennis_racket, bottle,
wineglass, cup, fork, knife, spoon, bowl, banana, apple, sandwich, orange_(fruit), broccoli, carrot,
pizza, doughnut, cake, chair, sofa, bed, dining_table, toilet, television_set, laptop_computer,
mouse_(computer_equipment), remote_control, computer_keyboard, cellular_telephone, microwave_oven,
oven, toaster, sink, refrigerator, book, clock, vase, scissors, teddy_bear, hair_dryer, toothbrush
"""
COCO = shipped_classes("coco")


def pairs(text):
    return dict(pair.strip().split("=") for pair in text.replace("\n", " ").split(","))


def match_classes(source, target):
    class_map = class_mapping.between(source, target)
    return {
        target.names[to]: {source.names[i] for i in own}
        for to, own in enumerate(class_map.members)
        if own
    }


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (VOC_IN_COCO, shipped_classes("voc")),
        (YTBB_IN_COCO, shipped_classes("ytbb")),
        (VID_IN_COCO, shipped_classes("vid30")),
        (BDD_IN_COCO, shipped_classes("bdd")),
        (KITTI_IN_COCO, shipped_classes("kitti")),
    ],
)
def test_a_coco_detector_finds_the_classes_of(text, target):
    assert match_classes(COCO, target) == {name: {own} for name, own in pairs(text).items()}
    # a list of names that somebody writes is the same list
    assert (
        match_classes(from_names(COCO.names), from_names(target.names)).keys() == pairs(text).keys()
    )


def test_voc_has_a_partner_for_each_of_its_20_classes():
    class_map = class_mapping.between(COCO, shipped_classes("voc"))
    assert not class_map.missing
    assert len(class_map.members) == 20
    by_alias = [
        name for name, way in zip(COCO.names, class_map.ways, strict=True) if way == "alias"
    ]
    assert by_alias == ["motorcycle", "airplane", "couch", "tv"], "the others differ by blanks only"


@pytest.mark.parametrize(
    "alike", [str.upper, str.title, lambda n: n + "s", lambda n: n.replace("_", " ")]
)
def test_case_plural_and_blanks_do_not_count(alike):
    target = Classes(tuple(map(alike, pairs(VOC_IN_COCO))))
    assert not class_mapping.between(COCO, target).missing


def test_a_detector_of_voc_on_coco_and_back():
    class_map = class_mapping.between(shipped_classes("voc"), COCO)
    to = {
        shipped_classes("voc").names[i]: COCO.names[d] for i, d in enumerate(class_map.destinations)
    }
    assert to == pairs(VOC_IN_COCO)


def test_lvis_spellings_are_cocos_classes():
    own = [name.strip() for name in LVIS.replace("\n", " ").split(",")]
    class_map = class_mapping.between(COCO, classes_of_names(dict.fromkeys(own)))
    assert class_map.missing == ()
    lost = {n for n, d in zip(COCO.names, class_map.destinations, strict=True) if d < 0}
    # a hot dog is a sandwich, says WordNet
    assert lost == {"sports ball", "potted plant"}


def test_older_names_of_bdd_are_known():
    class_map = class_mapping.between(COCO, from_names(OLD_BDD.split(", ")))
    assert class_map.missing == ("rider",)
    assert class_mapping.proposals(class_map) == {"rider": "person"}


# --- homonyms: one spelling, two things


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (("mouse", "person"), ("Mouse", "Person")),  # COCO's device, Open Images' animal
        (("Mouse", "Person"), ("mouse", "person")),
    ],
)
def test_a_spelling_of_two_lists_meets_only_its_own_sense(model, data):
    class_map = class_mapping.between(from_names(model), from_names(data))
    assert class_map.members == ((), (1,))


def test_a_bird_is_not_mapped_to_a_toy():
    birds = classes_of_names({"kite": "n01608432", "vulture": None})
    assert class_mapping.by_meaning(COCO, birds).members == ((), ())
    ilsvrc = shipped_classes("imagenet1k")
    assert match_classes(ilsvrc, birds)["kite"] == {"kite"}
    toys = from_names(["kite", "person"])  # both are COCO's, and no other list has the two
    assert class_mapping.between(ilsvrc, toys).members[0] == ()
    assert match_classes(COCO, toys)["kite"] == {"kite"}


def test_a_mouse_with_the_wordnet_id_of_the_rodent_is_no_device():
    assert class_mapping.by_meaning(COCO, classes_of_names({"mouse": "n02330245"})).members == ((),)
    assert class_mapping.by_meaning(COCO, classes_of_names({"mouse": None})).members != ((),)


def test_a_name_of_several_senses_among_others_meets_by_name_alone():
    mixed = classes_of_names({"kite": None, "gnome": None})
    assert mixed.wnids is None
    class_map = class_mapping.between(COCO, mixed)
    assert class_map.members[0] == (COCO.names.index("kite"),)
    assert class_map.ways[COCO.names.index("kite")] == "name alone"


def test_bikes_and_motors_are_known_in_bdd_alone():
    mixed = classes_of_names({"bike": None, "gnome": None})
    with pytest.raises(UsageError, match="none of them matches any of bike, gnome"):
        class_mapping.between(COCO, mixed)


# --- above and below


def test_men_and_women_are_persons_of_voc_and_kitti_and_bdd():
    for name, target in (("person", "voc"), ("Pedestrian", "kitti"), ("pedestrian", "bdd")):
        assert match_classes(shipped_classes("openimages"), shipped_classes(target))[name] == {
            *("Person", "Man", "Woman", "Boy", "Girl")
        }


def test_persons_who_sit_and_cyclists_are_persons():
    assert match_classes(shipped_classes("kitti"), COCO)["person"] == {
        "Pedestrian",
        "Person_sitting",
        "Cyclist",
    }
    # and the other way round a person is none of the two in particular
    class_map = class_mapping.between(COCO, shipped_classes("kitti"))
    assert class_map.missing == ("Van", "Person_sitting", "Cyclist", "Tram", "Misc")
    assert class_mapping.proposals(class_map) == {
        **{"Van": "truck", "Person_sitting": "person", "Cyclist": "person"},
        **{"Tram": "", "Misc": ""},
    }


def test_imagenet_reaches_the_classes_of_detectors():
    to_voc = match_classes(shipped_classes("imagenet1k"), shipped_classes("voc"))
    assert len(to_voc["dog"]) == 118
    assert to_voc["tvmonitor"] == {"television"}
    assert to_voc["sofa"] == {"studio couch"}
    assert "bullet train" in to_voc["train"]


def test_the_teddy_bear_of_coco_is_not_mapped_to_bear():
    assert match_classes(COCO, shipped_classes("ytbb"))["bear"] == {"bear"}


def test_several_classes_of_a_model_are_one_of_the_data():
    source = from_names(["sofa", "couch", "gnome"])
    assert class_mapping.between(source, from_names(["settee", "gnome"])).members == ((0, 1), (2,))
    # and where the data has both, each meets its own
    assert class_mapping.between(source, from_names(["couch", "sofa"])).destinations == (1, 0, -1)


def test_equal_names_of_other_things_are_not_the_same_list():
    device, animal = (
        classes_of_names({"mouse": "n03793489"}),
        classes_of_names({"mouse": "n02330245"}),
    )
    with pytest.raises(UsageError, match="none of them matches any of mouse"):
        class_mapping.between(device, animal)


# --- the shipped table


def rows():
    with (wordnet.DATA / "meanings.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_id_is_shipped_and_every_row_above_is_a_row():
    known_names = {row["meaning"] for row in rows()}
    assert len(known_names) == len(rows())
    for row in rows():
        assert not row["wnid"] or row["wnid"] in wordnet.synsets(), row
        assert not row["above"] or row["above"] in known_names, row


def test_no_spelling_has_two_meanings_in_one_list():
    spellings = {}
    for row in rows():
        for entry in row["names"].split("|"):
            where, _, name = entry.rpartition(":")
            other = spellings.setdefault((where, meanings.normalise_spelling(name)), row["meaning"])
            assert other == row["meaning"], entry


def test_no_two_meanings_share_an_id():
    ids = [w for row in rows() for w in (row["wnid"], *row["also"].split("|")) if w]
    assert len(ids) == len(set(ids))


def test_every_class_of_coco_voc_and_bdd_has_a_meaning():
    for name in ("coco", "voc", "bdd"):
        assert all(meanings.of(shipped_classes(name))), name
    assert meanings.of(COCO) == COCO.names
    assert set(LISTS) >= {"voc", "kitti", "bdd", "coco", "openimages", "ytbb", "vid30"}


# --- what `check` and the headline say


@pytest.fixture
def voc_labels(test_data, tmp_path):
    """COCO's own annotations under VOC's names, with a class that COCO has not."""
    folder = test_data / "coco" / "tinycoco"
    content = json.loads((folder / "annotations" / "instances_train2017.json").read_text())
    to = {own: name for name, own in pairs(VOC_IN_COCO).items()}
    ids = {
        category["id"]: to[category["name"]]
        for category in content["categories"]
        if category["name"] in to
    }
    content["categories"] = [{"id": i, "name": n} for i, n in ids.items()]
    content["annotations"] = [a for a in content["annotations"] if a["category_id"] in ids]
    content["categories"].append({"id": 999, "name": "garden gnome"})
    content["annotations"][0]["category_id"] = 999
    path = tmp_path / "voc.json"
    path.write_text(json.dumps(content))
    return f"coco(annotations='{path}', images='{folder / 'images' / 'train2017'}')"


def test_check_and_headline_say_how_classes_met_and_which_did_not(voc_labels, test_data, tmp_path):
    path = test_data / "models" / "yolox_nano.onnx"
    model = f"onnx_detector(path='{path}', classes='coco', decoder='yolox')"
    job = Job(models=(model,), data=(voc_labels,), out=str(tmp_path / "r"), metrics="map")
    plan = check(job)
    lines = class_mapping.describe_matches(plan.tasks[0].class_map)
    assert "by alias, 4: motorcycle = motorbike, airplane = aeroplane, couch = sofa" in lines[1]
    assert lines[-1].startswith("classes of the data without a class of the model, 1: garden gnome")
    headline = document([run(plan, Watcher())]).headline
    assert "has no counterpart among the model's classes: garden gnome." in headline[0]
