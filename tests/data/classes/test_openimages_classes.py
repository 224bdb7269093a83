"""Open Images' classes: the shipped list and hierarchy, and the maps to and from COCO's."""

import json

import pytest

from steadyeye.core.types import Classes
from steadyeye.data.classes import class_mapping, openimages
from steadyeye.data.classes.class_lists import shipped_classes

# every COCO class and the Open Images class that a detector's answer stands for
PAIRS = """
person=Person, bicycle=Bicycle, car=Car, motorcycle=Motorcycle, airplane=Airplane, bus=Bus,
train=Train, truck=Truck, boat=Boat, traffic light=Traffic light, fire hydrant=Fire hydrant,
stop sign=Stop sign, parking meter=Parking meter, bench=Bench, bird=Bird, cat=Cat, dog=Dog,
horse=Horse, sheep=Sheep, cow=Cattle, elephant=Elephant, bear=Bear, zebra=Zebra, giraffe=Giraffe,
backpack=Backpack, umbrella=Umbrella, handbag=Handbag, tie=Tie, suitcase=Suitcase,
frisbee=Flying disc, skis=Ski, snowboard=Snowboard, sports ball=Ball, kite=Kite,
baseball bat=Baseball bat, baseball glove=Baseball glove, skateboard=Skateboard,
surfboard=Surfboard, tennis racket=Tennis racket, bottle=Bottle, wine glass=Wine glass,
cup=Tableware, fork=Fork, knife=Knife, spoon=Spoon, bowl=Bowl, banana=Banana, apple=Apple,
sandwich=Sandwich, orange=Orange, broccoli=Broccoli, carrot=Carrot, hot dog=Hot dog, pizza=Pizza,
donut=Doughnut, cake=Cake, chair=Chair, couch=Couch, potted plant=Houseplant, bed=Bed,
dining table=Kitchen & dining room table, toilet=Toilet, tv=Television, laptop=Laptop,
mouse=Computer mouse, remote=Remote control, keyboard=Computer keyboard, cell phone=Mobile phone,
microwave=Microwave oven, oven=Oven, toaster=Toaster, sink=Sink, refrigerator=Refrigerator,
book=Book, clock=Clock, vase=Vase, scissors=Scissors, teddy bear=Teddy bear, hair drier=Hair dryer,
toothbrush=Toothbrush
"""

# what a detector of Open Images says is more besides the class itself; all others map one to one
MORE = {
    "person": {"Man", "Woman", "Boy", "Girl"},
    "car": {"Limousine", "Van", "Taxi"},
    "boat": {"Barge", "Gondola", "Canoe"},
    "bird": {
        *("Magpie", "Woodpecker", "Blue jay", "Ostrich", "Penguin", "Raven", "Chicken", "Eagle"),
        *("Owl", "Duck", "Canary", "Goose", "Swan", "Falcon", "Parrot", "Sparrow", "Turkey"),
    },
    "cow": {"Bull"},
    "bear": {"Brown bear", "Polar bear", "Panda"},
    "sports ball": {
        *("Football", "Cricket ball", "Volleyball", "Tennis ball", "Rugby ball", "Golf ball"),
    },
    "cup": {"Coffee cup", "Mug"},
    "knife": {"Kitchen knife"},
    "bowl": {"Mixing bowl"},
    "sandwich": {"Hamburger", "Submarine sandwich"},
    "couch": {"Sofa bed", "Loveseat", "Studio couch"},
    "bed": {"Infant bed"},
    "tv": {"Computer monitor"},
    "clock": {"Alarm clock", "Digital clock", "Wall clock"},
}

COCO, OPEN = shipped_classes("coco"), shipped_classes("openimages")
MID = {name: mid for mid, name in openimages.released_names().items()}


def above(name):
    return {openimages.released_names()[mid] for mid in openimages.steps(MID[name], HIERARCHY)} - {
        name
    }


HIERARCHY = openimages.hierarchy()


def pairs():
    return dict(pair.strip().split("=") for pair in PAIRS.replace("\n", " ").split(","))


# --- the shipped data


def test_every_class_of_the_released_hierarchy_is_named_and_no_other(test_data):
    path = test_data / "openimages" / "bbox_labels_600_hierarchy.json"
    tree = json.loads(path.read_text())
    edges = {}

    def walk(node):
        for child in node.get("Subcategory", ()):
            edges.setdefault(child["LabelName"], set()).add(node["LabelName"])
        edges.setdefault(node["LabelName"], set())
        for child in (*node.get("Subcategory", ()), *node.get("Part", ())):
            walk(child)

    walk(tree)
    root = tree["LabelName"]
    assert set(openimages.released_names()) == edges.keys() - {root}
    for mid, parents in HIERARCHY.items():
        assert set(parents) == edges[mid] - {root}


def test_names_are_distinct_and_there_are_601():
    assert len(openimages.released_names()) == len(set(OPEN.names)) == 601
    assert OPEN.names[:2] == ("Tortoise", "Container")


def test_nothing_stands_above_itself():
    for mid in HIERARCHY:
        higher = [up for parent in HIERARCHY[mid] for up in openimages.steps(parent, HIERARCHY)]
        assert mid not in higher, f"a cycle through {openimages.released_names()[mid]}"


@pytest.mark.parametrize(
    ("name", "ancestors"),
    [
        ("Man", {"Person"}),
        ("Football", {"Ball", "Sports equipment"}),
        ("Owl", {"Bird", "Animal"}),
        ("Cat", {"Carnivore", "Mammal", "Animal"}),
        ("Bicycle", {"Land vehicle", "Vehicle", "Sports equipment"}),  # two parents
        ("Human head", set()),  # a part of the human body, and no kind of it
        ("Bicycle wheel", set()),
        ("Musical keyboard", {"Musical instrument"}),  # an is-a below a part of Building
    ],
)
def test_the_ancestors_of_a_class_are_those_of_the_hierarchy(name, ancestors):
    assert above(name) == ancestors


def test_parents_are_the_hierarchy_and_skip_classes_that_are_not_listed():
    index = OPEN.names.index
    assert OPEN.parents[index("Man")] == (index("Person"),)
    assert len(OPEN.parents[index("Bicycle")]) == 2
    mids = [MID[name] for name in ("Animal", "Cat", "Land vehicle", "Bicycle", "Human head")]
    assert openimages.parents(mids, HIERARCHY) == ((), (0,), (), (2,), ())


# --- the maps


def test_each_coco_class_maps_to_the_class_that_means_the_same():
    class_map = class_mapping.between(COCO, OPEN)
    mapping = {
        name: OPEN.names[to] for name, to in zip(COCO.names, class_map.destinations, strict=True)
    }
    assert mapping == pairs()
    assert len(mapping) == 80
    assert set(openimages.meanings("same")) == set(COCO.names) - {"cup"}
    assert class_map.origin == "by Open Images' classes"


def test_each_open_images_class_maps_to_the_coco_class_that_it_is():
    class_map = class_mapping.between(OPEN, COCO)
    assert not class_map.missing
    for name, members in zip(COCO.names, class_map.members, strict=True):
        same = {
            openimages.released_names()[mid] for mid in openimages.meanings("same").get(name, ())
        }
        assert {OPEN.names[i] for i in members} == same | MORE.get(name, set()), name


def test_no_open_images_class_means_two_coco_classes():
    own = [mid for mids in openimages.meanings("same", "narrower").values() for mid in mids]
    assert len(own) == len(set(own))


def test_a_coco_class_mapped_to_open_images_and_back_is_the_same():
    forward, back = class_mapping.between(COCO, OPEN), class_mapping.between(OPEN, COCO)
    for index, name in enumerate(COCO.names):
        home = back.destinations[forward.destinations[index]]
        assert home == (-1 if name == "cup" else index), name


def test_mouse_maps_to_the_animal_or_the_device_by_its_spelling():
    two = Classes(("Mouse", "Person"))
    assert openimages.space(two.names) == "openimages"
    assert class_mapping.between(COCO, two).members == ((), (COCO.names.index("person"),))
    lower = Classes(("mouse", "person"))
    assert openimages.space(lower.names) == "coco"
    members = class_mapping.between(OPEN, lower).members
    assert [OPEN.names[i] for i in members[0]] == ["Computer mouse"]


def test_names_of_later_releases_are_the_same_classes():
    later = {"Doughnut": "Donut", "Egg": "Egg (Food)", "Bat": "Bat (Animal)"}
    names = Classes(tuple(later.get(name, name) for name in OPEN.names))
    assert class_mapping.between(names, OPEN).destinations == tuple(range(601))
    assert (
        class_mapping.between(COCO, names).destinations
        == class_mapping.between(COCO, OPEN).destinations
    )


def test_a_class_goes_to_the_nearest_above_it_where_its_own_is_not_there():
    few = Classes(("Vehicle", "Land vehicle", "Person", "Mammal"))
    class_map = class_mapping.between(COCO, few)
    to = {name: class_map.destinations[COCO.names.index(name)] for name in ("car", "boat", "dog")}
    assert to == {"car": 1, "boat": 0, "dog": 3}
    assert class_map.destinations[COCO.names.index("bird")] == -1, "a bird is no mammal"


def test_of_two_equally_near_parents_the_lower_one_is_taken():
    class_map = class_mapping.between(
        Classes(("Hat", "Cat")), Classes(("Clothing", "Fashion accessory"))
    )
    assert class_map.destinations == (1, -1), "a hat is both, and a fashion accessory is clothing"


def test_gaps_between_cocos_numbers_map_to_nothing():
    gappy = Classes(("N/A 0", *COCO.names[:12], "N/A 12", *COCO.names[12:]))
    class_map = class_mapping.between(gappy, OPEN)
    assert class_map.destinations[0] == class_map.destinations[13] == -1
    assert OPEN.names[class_map.destinations[1]] == "Person"


@pytest.mark.parametrize("names", [("person", "gnome"), ("Table tennis", "Cat"), ("N/A",), ()])
def test_other_lists_are_of_neither(names):
    assert openimages.space(names) is None


def test_coco_to_coco_is_by_wordnet():
    assert class_mapping.between(COCO, Classes(("mouse", "person"))).origin == "by WordNet"
