import ast
import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes
from steadyeye.data.classes import class_mapping, wordnet
from steadyeye.data.classes.class_lists import (
    LISTS,
    classes_of_names,
    from_names,
    read,
    shipped_classes,
)
from steadyeye.data.classes.class_map import ClassMap
from steadyeye.data.classes.class_mapping import named_map
from steadyeye.data.classes.map_file import from_file, to_csv
from steadyeye.data.classes.matching import same_names

# docs/reference/class-maps.md, "YTBB-Robust": index, released, with the plain meaning
PLAIN_YTBB = {"cow": "n02402425", "potted plant": "n11536230"}
PLAIN_DIFFERENCES = [(345, None, "cow")]
PLAIN_DIFFERENCES += [(index, "potted plant", None) for index in (985, 986)]


def read_installed(package: str, path: str) -> str:
    """The text of a file of a package that is not imported, as torchvision may not import."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return (Path(spec.submodule_search_locations[0]) / path).read_text(encoding="utf-8")


def read_release(path: Path) -> dict[int, int]:
    return {int(k): v for k, v in json.loads(path.read_text(encoding="utf-8")).items()}


def map_indices(class_map: ClassMap) -> dict[int, int]:
    return {i: to for i, to in enumerate(class_map.destinations) if to >= 0}


def name_map(class_map: ClassMap) -> dict[str, str]:
    source, target = class_map.source.names, class_map.target.names
    return {source[i]: target[to] for i, to in map_indices(class_map).items()}


# --- the shipped data


def test_ilsvrc_order_is_timms():
    wnids = read_installed("timm", "data/_info/imagenet_synsets.txt").split()
    assert shipped_classes("imagenet1k").wnids == tuple(wnids)


def test_every_hypernym_is_shipped():
    above = {up for synset in wordnet.synsets().values() for up in synset.hypernyms}
    assert above <= set(wordnet.synsets())
    targets = {wnid for name in LISTS for wnid in shipped_classes(name).wnids or () if wnid}
    assert targets <= set(wordnet.synsets())
    # every ILSVRC class climbs to the root
    assert all("n00001740" in wordnet.steps(w) for w in shipped_classes("imagenet1k").wnids or ())


def test_labels_are_unique_and_mean_their_class():
    classes = shipped_classes("imagenet1k")
    assert len({wordnet.plain(name) for name in classes.names}) == 1000
    assert classes_of_names(dict.fromkeys(classes.names)) == classes
    assert classes.names[134] == "crane (wading bird)"


def test_vid30_and_ytbb_are_the_releases(test_data):
    vid = json.loads((test_data / "wordnet/vid30.json").read_text())
    assert shipped_classes("vid30").names == tuple(entry["name"] for entry in vid)
    assert shipped_classes("vid30").wnids == tuple(entry["wnid"] for entry in vid)
    ytbb = json.loads((test_data / "ytbb_robust/metadata/ytbb_class_index.json").read_text())
    assert shipped_classes("ytbb").names == tuple(ytbb[str(i)] for i in range(24))


def test_an_unknown_class_list_suggests_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'imagenet1k'"):
        shipped_classes("imagenet")


# --- WordNet


@pytest.mark.parametrize("name", ["traffic light", "traffic_light", "Traffic  Light"])
def test_synset_ignores_case_and_underscores(name):
    assert wordnet.synset(name) == "n06874185"


def test_synset_takes_the_lowest_sense():
    assert wordnet.synset("car") == "n02958343"  # car#1, not the railway car
    assert wordnet.synset("polecat") == "n02445715"  # polecat#1 the skunk, not polecat#2
    assert wordnet.synset("no such thing") is None


def test_steps_take_the_shortest_way():
    minivan = wordnet.steps("n03770679")
    assert minivan["n03770679"] == 0
    assert minivan["n02958343"] == 1  # car
    assert minivan["n04490091"] == 3  # truck, by way of van
    assert set(wordnet.steps("n99999999")) == {"n99999999"}


# --- derived maps


def test_imagenet_to_vid30_is_the_released_map(test_data):
    metadata = test_data / "imagenet_vid_robust/metadata"
    derived = class_mapping.between(shipped_classes("imagenet1k"), shipped_classes("vid30"))
    assert derived.origin == "by WordNet"
    assert map_indices(derived) == read_release(metadata / "class_idx_map.json")
    assert len(map_indices(derived)) == 288
    assert derived.missing == ()


def test_imagenet_to_ytbb_is_the_released_map(test_data):
    metadata = test_data / "ytbb_robust/metadata"
    derived = class_mapping.between(shipped_classes("imagenet1k"), shipped_classes("ytbb"))
    assert map_indices(derived) == read_release(metadata / "class_idx_map.json")
    assert derived.missing == ("cow", "giraffe", "skateboard", "toilet", "none")


def test_plain_meanings_differ_from_the_ytbb_release_as_documented(test_data):
    release = read_release(test_data / "ytbb_robust/metadata/class_idx_map.json")
    ytbb = shipped_classes("ytbb")
    meanings = dict(zip(ytbb.names, ytbb.wnids or (), strict=True)) | PLAIN_YTBB
    meant = Classes(ytbb.names, tuple(meanings.values()))
    plain = map_indices(class_mapping.by_meaning(shipped_classes("imagenet1k"), meant))
    differences = [
        tuple([i] + [ytbb.names[m[i]] if i in m else None for m in (release, plain)])
        for i in sorted(release.keys() | plain.keys())
        if release.get(i) != plain.get(i)
    ]
    assert differences == PLAIN_DIFFERENCES
    page = Path(__file__).resolve().parents[3] / "docs" / "reference" / "class-maps.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if re.match(r"\| \d{3} ", line)]
    documented = [tuple(cell.strip() for cell in row.split("|")[1:4]) for row in rows]
    names_of = shipped_classes("imagenet1k").names
    assert [(a, b.split(",")[0], c) for a, b, c in documented] == [
        (f"{i} {names_of[i]}", release_name or "none", plain_name or "none")
        for i, release_name, plain_name in differences
    ]


def test_a_class_maps_to_its_nearest_ancestor():
    target, source = (
        classes_of_names(dict.fromkeys(names.split()))
        for names in ("animal carnivore feline cat vehicle", "tabby tiger beagle tench airliner")
    )
    assert name_map(class_mapping.by_meaning(source, target)) == {
        "tabby": "cat",
        "tiger": "feline",
        # animal is two steps up as well, by way of domestic animal, but lies above carnivore
        "beagle": "carnivore",
        "tench": "animal",
        "airliner": "vehicle",
    }


def test_wordnet_falls_back_on_names_without_an_id():
    source = Classes(("beagle", "Robot"), ("n02088364", ""))
    target = Classes(("robot", "dog", "beagle"), ("", "n02084071", ""))
    assert name_map(class_mapping.by_meaning(source, target)) == {"beagle": "dog", "Robot": "robot"}


def test_between_takes_identity_then_meanings_then_names():
    classes = Classes(("Traffic_Light", "dog"))
    with_ids = Classes(classes.names, ("n06874185", "n02084071"))
    assert class_mapping.between(classes, with_ids).origin == "identity"
    assert class_mapping.between(classes, Classes(("traffic light",))).origin == "by WordNet"
    assert class_mapping.between(Classes(("gnome",)), Classes(("Gnome",))).origin == "by name"
    with pytest.raises(UsageError, match=r"2 classes to the data's 1: none .* car; .*--class-map"):
        class_mapping.between(classes, Classes(("car",)))
    many = Classes(tuple("abcdefg"))
    with pytest.raises(UsageError, match="matches any of a, b, c, d, e and 2 more"):
        class_mapping.between(classes, many)


def test_by_name_prefers_the_exact_spelling():
    assert same_names(("Cardigan", "cardigan"), ("cardigan", "Cardigan")) == {0: 1, 1: 0}


# --- scores


def naive(class_map: ClassMap, scores: np.ndarray, reduce: str) -> np.ndarray:
    rows = []
    for row in scores:
        picked = [[row[c] for c in own] for own in class_map.members]
        rows.append([{"max": max, "sum": sum}[reduce](p) if p else -np.inf for p in picked])
    return np.array(rows, dtype=np.float32).reshape(len(scores), len(class_map.target))


@pytest.mark.parametrize("reduce", ["max", "sum"])
@pytest.mark.parametrize("seed", range(25))
def test_apply_equals_a_loop(seed, reduce):
    rng = np.random.default_rng(seed)
    n, wide, narrow = rng.integers(0, 9), rng.integers(1, 40), rng.integers(1, 12)
    to = rng.integers(-1, narrow, size=wide)
    members = tuple(tuple(np.flatnonzero(to == t).tolist()) for t in range(narrow))
    source, target = (Classes(tuple(map(str, range(k)))) for k in (wide, narrow))
    class_map = ClassMap(source, target, members, "random")
    scores = rng.normal(size=(n, wide)).astype(np.float32)
    scores.flags.writeable = False
    result = class_map.apply(scores, reduce)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, naive(class_map, scores, reduce), rtol=1e-5, atol=1e-6)
    assert class_map.missing == tuple(str(t) for t in range(narrow) if t not in to)
    assert class_map.destinations == tuple(to.tolist())


def test_identity_keeps_scores_and_does_not_share_them():
    scores = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = class_mapping.identity(Classes(("a", "b", "c"))).apply(scores)
    assert np.array_equal(result, scores)
    assert not np.shares_memory(result, scores)


def test_apply_refuses_what_does_not_fit():
    vid = class_mapping.identity(shipped_classes("vid30"))
    with pytest.raises(UsageError, match=r"\(2, 31\), but its class list has 30"):
        vid.apply(np.zeros((2, 31), dtype=np.float32))
    with pytest.raises(UsageError, match="no reduction named 'mean'"):
        vid.apply(np.zeros((2, 30), dtype=np.float32), "mean")


# --- map files


@pytest.mark.parametrize("target", ["vid30", "ytbb", "imagenet1k"])
def test_a_class_map_is_read_back_from_csv(tmp_path, target):
    first = class_mapping.between(shipped_classes("imagenet1k"), shipped_classes(target))
    file = tmp_path / "map.csv"
    file.write_text(to_csv(first), encoding="utf-8")
    again = from_file(file, first.source, first.target)
    assert again.members == first.members
    assert again.origin == "file map.csv"


def test_released_index_maps_are_read(test_data):
    for target, folder in (("vid30", "imagenet_vid_robust"), ("ytbb", "ytbb_robust")):
        metadata = test_data / folder / "metadata"
        classes = shipped_classes("imagenet1k"), shipped_classes(target)
        forward = from_file(metadata / "class_idx_map.json", *classes)
        backward = from_file(metadata / "rev_class_idx_map.json", *classes)
        assert forward.members == backward.members
        assert forward.members == class_mapping.between(*classes).members


def read_refusal(folder, name, text, read_file):
    """The one line with which a file is refused; without a name it is absent."""
    file = folder / (name or "absent.csv")
    if name:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_file(file)
    assert "\n" not in str(caught.value)
    return str(caught.value)


SOURCE = Classes(("tabby", "tiger cat", "beagle"), ("n02123045", "n02123159", "n02088364"))
TARGET = Classes(("cat", "dog"), ("n02121620", "n02084071"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "model,data\ntabby,cat\nTiger_Cat,cat\nbeagle,dog\n"),
        ("b.csv", "\ufeffmodel , data\n0, 0\n1, 0\n\nn02088364, n02084071\n"),
        ("c.csv", "model_index,model,data_index,data\n0,,,cat\n1,tiger cat,0,\n2,beagle,1,dog\n"),
        ("d.csv", "model_wnid,data\nn02123045,cat\nn02123159,cat\nn02088364,dog\n"),
        ("e.json", '{"tabby": "cat", "tiger cat": 0, "2": "n02084071"}'),
        ("f.json", '{"cat": ["tabby", 1], "dog": ["n02088364"]}'),
        ("g.json", '{"0": 0, "1": 0, "2": 1}'),
    ],
)
def test_every_form_of_a_map(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert from_file(file, SOURCE, TARGET).members == ((0, 1), (2,))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "model,data\ntaby,cat\n", "2: no model class named 'taby'; did you mean 'tabby'"),
        ("a.csv", "model,data\n\ntabby,cow\n", "3: no data class named 'cow'; known: cat, dog"),
        ("a.csv", "model,data\n3,cat\n", "there is no model class 3; use 0 to 2"),
        ("a.csv", "model,data\ntabby,cat\ntabby,dog\n", "'tabby' maps to both 'cat' and 'dog'"),
        ("a.csv", "from,to\ntabby,cat\n", "maps nothing; give the columns model and data"),
        ("a.csv", "", "maps nothing"),
        ("a.csv", "model,data\ntench, Tinca tinca,cat\n", "line 2 has more cells"),
        ("a.csv", "model_index,model,data\n1,tabby,cat\n", "index 1 is 'tiger cat', but model"),
        ("a.csv", "model_index,data\n-1,cat\n", "there is no model class -1"),
        ("a.json", "{", "cannot read the class map"),
        ("a.json", "[1]", "is no JSON object"),
        ("a.json", '{"tabby": 0.5}', "names a class 0.5"),
        ("a.json", '{"cow": ["tabby"]}', "no data class named 'cow'"),
        ("a.yaml", "", "is none of .csv, .json"),
        (None, "", "no class map at"),
    ],
)
def test_map_errors_say_what_and_where(tmp_path, name, text, message):
    line = read_refusal(tmp_path, name, text, lambda file: from_file(file, SOURCE, TARGET))
    assert message in line


def test_a_name_of_two_classes_needs_its_index(tmp_path):
    file = tmp_path / "map.csv"
    file.write_text("model,data\ncrane,bird\n", encoding="utf-8")
    twice = Classes(("crane", "crane"))
    with pytest.raises(UsageError, match="two model classes 'crane'; use an index"):
        from_file(file, twice, Classes(("bird",)))
    file.write_text("model_index,model,data\n0,crane,bird\n", encoding="utf-8")
    assert from_file(file, twice, Classes(("bird",))).members == ((0,),)


# --- class lists


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "# ours\nn02123045\ndog\n\nn06874185 stop light\nrobot\n"),
        ("b.txt", "tabby,n02123045\ndog n02084071\nn06874185,stop light\nrobot"),
        ("c.csv", "name,wnid\ntabby,\ndog,\nstop light,n06874185\nrobot,\n"),
        ("d.csv", "wnid,name\nn02123045,\nn02084071,dog\nn06874185,stop light\n,robot\n"),
        ("e.json", '{"tabby": null, "dog": null, "stop light": "n06874185", "robot": null}'),
    ],
)
def test_every_form_of_a_list(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    ids = ("n02123045", "n02084071", "n06874185", "")
    assert read(str(file)) == Classes(("tabby", "dog", "stop light", "robot"), ids)


@pytest.mark.parametrize("start", [0, 1])
def test_a_class_list_in_another_order_than_its_numbers_is_refused(start, tmp_path):
    # the first line is the model's first class, so two classes would be exchanged
    file = tmp_path / "classes.csv"
    file.write_text(f"Index;Name\n{start};ant\n{start + 2};cat\n{start + 1};bee\n")
    with pytest.raises(UsageError, match="is not in the order of its column 'Index'; sort its"):
        read(str(file))
    for numbers in ((start, start + 1, start + 2), (90, 5, 7)):  # of the images of each class
        lines = [f"{n};{name}\n" for n, name in zip(numbers, ("ant", "bee", "cat"), strict=True)]
        file.write_text("Index;Name\n" + "".join(lines))
        assert read(str(file)).names == ("ant", "bee", "cat")


def test_class_lists_are_read_from_json_and_by_name(tmp_path):
    file = tmp_path / "list.json"
    for text in ('["dog", "n02123045"]', '{"1": "n02123045", "0": "dog"}'):
        file.write_text(text, encoding="utf-8")
        assert read(str(file)) == Classes(("dog", "tabby"), ("n02084071", "n02123045"))
    file.write_text('{"0": null, "1": null}', encoding="utf-8")
    assert read(str(file)) == Classes(("0", "1"))
    assert read("vid30") is shipped_classes("vid30")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "", "is empty"),
        ("a.txt", "dog\ncat\ndog\n", "two classes are named 'dog'"),
        ("a.csv", "label\ndog\n", "has no column name"),
        ("a.csv", "name,wnid\ndog,\n,x\n", "the WordNet id 'x'"),
        ("a.csv", 'name,id\ndog,1\n"",2\n', "class 2 has neither name nor wnid"),
        ("a.json", '{"dog": "02084071"}', "ids look like n02084071"),
        ("a.json", '{"dog": 3}', "is no class list"),
        ("a.json", "{", "cannot read the class list"),
        ("a.md", "dog", "is none of .txt, .csv, .json"),
        (None, "", "no class list at"),
    ],
)
def test_list_errors_say_what(tmp_path, name, text, message):
    assert message in read_refusal(tmp_path, name, text, lambda file: read(str(file)))


def test_undecodable_file_is_named(tmp_path):
    file = tmp_path / "list.txt"
    file.write_bytes("café".encode("latin-1"))
    with pytest.raises(UsageError, match="save it as UTF-8"):
        read(str(file))


def test_names_in_python_are_no_list():
    with pytest.raises(UsageError, match=r"\['a', 'b'\] is no class list; write the names into"):
        read(["a", "b"])


def test_a_mistyped_list_suggests():
    with pytest.raises(UsageError, match="no class list named 'vid3'; did you mean 'vid30'"):
        read("vid3")


def test_classes_keep_their_names_and_get_wordnet_ids():
    twice = Classes(("n02084071", "Dog"), ("n02084071",) * 2)
    assert classes_of_names({"n02084071": None, "Dog": None}) == twice
    assert classes_of_names({"qwertz": None}) == Classes(("qwertz",))


def test_usual_imagenet_labels_are_recognised(tmp_path):
    lines = read_installed("timm", "data/_info/imagenet_synset_to_lemma.txt").splitlines()
    lemmas = dict(line.split("\t") for line in lines)
    hugging_face = [lemmas[wnid] for wnid in shipped_classes("imagenet1k").wnids or ()]
    assert from_names(hugging_face) == shipped_classes("imagenet1k")
    file = tmp_path / "id2label.json"
    file.write_text(json.dumps(dict(enumerate(hugging_face))), encoding="utf-8")
    assert read(str(file)) == shipped_classes("imagenet1k")
    keras = [text.split(", ")[0].replace(" ", "_") for text in hugging_face]
    assert from_names(keras) == shipped_classes("imagenet1k")
    with pytest.raises(UsageError, match="two classes are named"):
        from_names([*keras[1:], keras[0]])  # out of order they are names, and two are cranes


def test_a_class_to_idx_is_a_list_in_the_order_of_its_numbers(tmp_path):
    file = tmp_path / "class_to_idx.json"
    file.write_text(json.dumps({"square": 1, "circle": 0}))
    assert read(str(file)).names == ("circle", "square")
    file.write_text(json.dumps({"square": 2, "circle": 1}))
    with pytest.raises(UsageError, match="2 classes from 1 to 2; number them from 0, each once"):
        read(str(file))


def test_torchvision_labels_are_recognised():
    tree = ast.parse(read_installed("torchvision", "models/_meta.py"))
    labels = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "_IMAGENET_CATEGORIES"
    )
    assert from_names(labels) == shipped_classes("imagenet1k")


def test_lists_say_what_the_names_of_a_map_mean(tmp_path):
    # `crane` alone is taken for the machine; the list says that it is the bird
    data = classes_of_names({"crane": None, "robot arm": None})
    model = shipped_classes("imagenet1k")
    (tmp_path / "data.txt").write_text("n02012849 crane\nrobot arm\n")
    text = f"imagenet1k:{tmp_path / 'data.txt'}"
    class_map = named_map(text, model, data)
    assert [model.names[i] for i in class_mapping.by_meaning(model, data).members[0]] == ["crane"]
    assert [model.names[i] for i in class_map.members[0]] == ["crane (wading bird)"]
    assert class_map.origin.endswith(f"names as in {text}")


def test_a_list_alone_is_of_whom_it_fits(test_data):
    model, data = shipped_classes("imagenet1k"), shipped_classes("vid30")
    released = class_mapping.by_meaning(model, data)
    assert named_map("vid30", model, Classes(data.names)).members == released.members
    assert named_map("imagenet1k:vid30", model, Classes(data.names)).members == released.members
    numbered = Classes(tuple(f"class {i}" for i in range(1000)))
    assert named_map("imagenet1k", numbered, data).members == released.members
    assert named_map("imagenet1k", numbered, data).source == numbered


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vid3", "no class map named 'vid3'; did you mean 'vid30'?"),
        ("bdd", "'tench' of the model's 1,000 classes is not in bdd, and 'airplane' of the data's"),
        ("imagenet1k:voc", "'airplane' of the data's 30 classes is not in voc"),
        ("nowhere.csv", "no class map at 'nowhere.csv'"),
        ("kitti.txt", "no class list at 'kitti.txt'"),
    ],
)
def test_an_invalid_class_map_is_refused(text, message):
    with pytest.raises(UsageError) as error:
        named_map(text, shipped_classes("imagenet1k"), shipped_classes("vid30"))
    assert message in str(error.value)


@pytest.mark.parametrize("lines", ["0 ring\n1 hot dog\n2 bar", "1: ring\n2: hot dog\n3: bar"])
def test_numbers_before_the_names_of_a_class_list_are_no_part_of_them(tmp_path, lines):
    (tmp_path / "classes.txt").write_text(lines)
    assert read(str(tmp_path / "classes.txt")).names == ("ring", "hot dog", "bar")
    (tmp_path / "classes.txt").write_text("\n".join(reversed(lines.splitlines())))
    with pytest.raises(UsageError, match="not in the order of their numbers; sort them"):
        read(str(tmp_path / "classes.txt"))
    (tmp_path / "classes.txt").write_text("7 eleven\nring\n2 bar")
    assert read(str(tmp_path / "classes.txt")).names == ("7 eleven", "ring", "2 bar")
