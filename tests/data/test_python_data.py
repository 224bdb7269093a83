"""Data as Python objects, with the real packages: the same numbers as from files."""

import maite.protocols.image_classification as ic
import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import steadyeye as se
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.data.python_data import read_items
from steadyeye.data.python_items import to_rgb

NAMES = ["cat", "dog", "owl"]
LABELS = [0, 2, 1, 1, 0, 2, 2, 0]


def draw():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (24, 20 + n, 3), np.uint8) for n in range(len(LABELS))]


def tell(images):
    """Scores that depend on every pixel."""
    means = images.astype(float).mean(axis=(1, 2)) + images[:, 0, 0]
    return means / means.sum(axis=1, keepdims=True)


class Photos(torch.utils.data.Dataset):
    """A dataset of PyTorch as torchvision makes them: tensors of 0 to 1, and `classes`."""

    classes = NAMES

    def __len__(self):
        return len(LABELS)

    def __getitem__(self, index):
        pixels = torch.from_numpy(draw()[index]).permute(2, 0, 1)
        return pixels.float() / 255, LABELS[index]


class MaitePhotos:
    """A dataset of MAITE: (3, h, w) arrays, one-hot truth, metadata."""

    metadata = {"id": "photos", "index2label": dict(enumerate(NAMES))}  # noqa: RUF012

    def __len__(self):
        return len(LABELS)

    def __getitem__(self, index):
        return draw()[index].transpose(2, 0, 1), np.eye(3)[LABELS[index]], {"id": index}


class MaiteClassifier:
    """A model of MAITE that does what `tell` does."""

    metadata = {"id": "teller", "index2label": dict(enumerate(NAMES))}  # noqa: RUF012

    def __call__(self, batch):
        return list(tell(np.stack(batch).transpose(0, 2, 3, 1)))


def hugging_face():
    import datasets

    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=NAMES)}
    )
    rows = {"image": [Image.fromarray(pixels) for pixels in draw()], "label": LABELS}
    return datasets.Dataset.from_dict(rows, features=features)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same images as files, and what is said of these."""
    root = tmp_path_factory.mktemp("photos")
    for number, (pixels, label) in enumerate(zip(draw(), LABELS, strict=True)):
        path = root / NAMES[label] / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(path)
    return root


@pytest.fixture(scope="module")
def native(folder):
    """Image number → scores and truth by the road of files."""
    table = se.evaluate(tell, f"image_folder(root='{folder}')").predictions
    order = np.argsort([int(name.split("/")[1].removesuffix(".png")) for name in table.ids])
    return table.scores[order], table.truth[order]


PAIRS = list(zip(draw(), LABELS, strict=True))
DATA = {
    "a list of arrays": lambda: [(p, NAMES[i]) for p, i in PAIRS],
    "PIL images": lambda: [(Image.fromarray(p), NAMES[i]) for p, i in PAIRS],
    "mappings": lambda: [{"image": p, "label": [NAMES[i]]} for p, i in PAIRS],
    "PyTorch": Photos,
    "Hugging Face": hugging_face,
    "MAITE": MaitePhotos,
}


@pytest.mark.parametrize("kind", DATA)
def test_the_numbers_are_those_of_the_same_files(kind, native):
    table = se.evaluate(tell, DATA[kind]()).predictions
    assert list(table.classes) == NAMES
    np.testing.assert_array_equal(table.truth, native[1])
    np.testing.assert_array_equal(table.scores, native[0])


def test_a_model_of_maite_gives_the_same_numbers(native):
    model, data = MaiteClassifier(), MaitePhotos()
    assert isinstance(model, ic.Model)
    assert isinstance(data, ic.Dataset)
    run = se.evaluate(model, data)
    assert (run.predictions.model, list(run.predictions.model_classes)) == ("teller", NAMES)
    np.testing.assert_array_equal(run.predictions.scores, native[0])


def test_images_may_be_paths(folder, native):
    paths = sorted(folder.glob("*/*.png"), key=lambda path: int(path.stem))
    table = se.evaluate(tell, [(path, path.parent.name) for path in paths]).predictions
    np.testing.assert_array_equal(table.scores, native[0])
    table = se.evaluate(tell, [(str(path), None) for path in paths], classes=NAMES).predictions
    np.testing.assert_array_equal(table.scores, native[0])
    assert not table.truth.any()


def test_every_kind_of_image_is_the_same_image():
    pixels = draw()[0]
    first = pixels.transpose(2, 0, 1)
    same = [
        *(pixels, first, pixels / 255, (first / 255).astype(np.float32)),
        *(torch.from_numpy(first.copy()), torch.from_numpy(first / 255), Image.fromarray(pixels)),
        np.concatenate([pixels, np.full((24, 20, 1), 7, np.uint8)], axis=2),  # alpha is left out
    ]
    for image in same:
        np.testing.assert_array_equal(to_rgb(image, "one"), pixels)
    grey = pixels[..., 0]
    for image in (grey, grey[..., None], grey[None], torch.from_numpy(grey.copy())):
        assert (to_rgb(image, "one") == grey[..., None]).all()
    # three rows of three pixels: an array has its channels last, a tensor first
    small = np.arange(27, dtype=np.uint8).reshape(3, 3, 3)
    np.testing.assert_array_equal(to_rgb(small, "one"), small)
    np.testing.assert_array_equal(to_rgb(torch.from_numpy(small), "one")[..., 0], small[0])


@pytest.mark.parametrize(("image", "words"), [
    (np.linspace(-1, 1, 300).reshape(10, 10, 3), "go from -1 to 1; give uint8.*before Normalize"),
    (np.full((10, 10, 3), np.nan), "go from nan to nan"),
    (np.full((10, 10, 3), 300, np.uint16), "are uint16; give uint8"),
    (np.zeros((2, 10, 10), np.uint8), r"numpy.ndarray of shape \(2, 10, 10\), no image"),
    (np.zeros((4, 3, 10, 10), np.uint8), "no image"),
    (np.zeros((0, 10, 3), np.uint8), "no image"),
    (torch.zeros(10, 10, 3), r"torch.Tensor of shape \(10, 10, 3\), no image"),
])  # fmt: skip
def test_an_array_that_is_no_image_is_refused(image, words):
    with pytest.raises(SampleError, match=words):
        to_rgb(image, "one")


class Stream(IterableDataset):
    def __iter__(self):
        return iter([])


class Broken(Photos):
    def __getitem__(self, index):
        raise OSError("the disk is away")


ONE = np.zeros((8, 8, 3), np.uint8)


@pytest.mark.parametrize(("data", "words"), [
    ((item for item in []), "cannot evaluate on generator; give a spec string, a list"),
    (Stream(), "cannot evaluate on .*Stream"),
    (DataLoader(Photos()), "cannot evaluate on .*DataLoader"),
    ({"image": ONE}, "cannot evaluate on dict"),
    (7, "cannot evaluate on int"),
    ([], "empty; give at least one item"),
    ([(ONE, 1)], r"the labels are numbers and the data name no classes; give classes=\[…\]"),
    ([(ONE, 0.5)], "the label of 'items/00000000' is float; give a number, the name of a"),
    ([(ONE, {"boxes": []})], "they have no labels.; give .*x0, y0, x1, y1"),
    ([(ONE, 1, 2, 3)], "has 4 parts"),
    ([{"picture": ONE}], "no key of 'items/00000000' named 'image'"),
    (Broken(), "item 0 of the data cannot be read: OSError: the disk is away"),
])  # fmt: skip
def test_invalid_data_are_refused_in_one_line(data, words):
    with pytest.raises(UsageError, match=words) as error:
        se.evaluate(tell, data)
    assert "\n" not in str(error.value)


def test_a_dataset_of_hugging_face_without_images_is_refused():
    from datasets import Dataset

    with pytest.raises(UsageError, match="named 'image'") as error:
        se.evaluate(tell, Dataset.from_dict({"text": ["a"]}))
    assert "\n" not in str(error.value)


def test_labels_are_checked_against_the_classes():
    with pytest.raises(UsageError, match="the label of 'items/00000000' is 3; classes go to 2"):
        read_items([(ONE, 3)], NAMES)
    with pytest.raises(UsageError, match="named 'cut'; did you mean 'cat'"):
        read_items([(ONE, "cut")], NAMES)
    labels = [-1, None, [2, 0], (), np.int64(1), torch.tensor(2), np.array([0.1, 0.2, 0.7])]
    source = read_items([(ONE, label) for label in labels], NAMES)
    assert list(source.truths) == [(), (), (0, 2), (), (1,), (2,), (2,)]


@pytest.mark.parametrize("suffix", ["png", "tiff"])
def test_the_upper_bits_of_sixteen_count_as_in_the_file(tmp_path, suffix):
    """PIL's `convert` cuts them off at 255, which makes a white image of most."""
    path = tmp_path / f"grey.{suffix}"
    Image.fromarray(np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)).save(path)
    with Image.open(path) as image:
        pixels = to_rgb(image, "one")
    np.testing.assert_array_equal(pixels, to_rgb(path, "one"))
    np.testing.assert_array_equal(pixels[..., 0].ravel(), np.linspace(0, 65535, 64) // 256)


@pytest.mark.parametrize(("values", "words"), [
    (np.full((8, 8), 300, np.int32), "are int32; give uint8"),
    (np.full((8, 8), 300, np.float32), "go from 300 to 300; give uint8"),
])  # fmt: skip
def test_an_image_of_pil_of_32_bits_is_not_cut_off(values, words):
    with pytest.raises(SampleError, match=words):
        to_rgb(Image.fromarray(values), "one")
    shares = Image.fromarray(np.full((8, 8), 0.2, np.float32))
    assert (to_rgb(shares, "one") == 51).all()


@pytest.mark.parametrize("kind", [float, np.float32, int, np.uint8, bool])
@pytest.mark.parametrize("pack", [np.asarray, torch.tensor, np.ndarray.tolist])
def test_a_row_a_class_counts_where_it_is_highest(kind, pack):
    """Also of whole numbers, as `one_hot` of PyTorch gives them: 0 and 1 are no classes there."""
    rows = [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]]
    source = read_items([(ONE, pack(np.array(row, kind))) for row in rows], [*NAMES, "elk"])
    assert list(source.truths) == [(2,), (0,), (1, 3), (), (0, 1, 2, 3)]


def test_numbers_of_several_classes_are_no_rows():
    labels = [[0, 1], np.array([1, 2]), torch.tensor([0]), [1, -1], (2, 1, 0)]
    source = read_items([(ONE, label) for label in labels], NAMES)
    assert list(source.truths) == [(0, 1), (1, 2), (0,), (1,), (0, 1, 2)]


@pytest.mark.parametrize(("label", "classes", "words"), [
    ([0, 1], 2, r"is \[0, 1\], which may be one-hot or both classes; give the number"),
    ([0, 1, 0], 4, "has a number twice, and 3 numbers for 4 classes"),
    ([0.0, 1.0], 3, "has 2 scores for 3 classes"),
    ([0.2, 0.2, 0.2], 3, "scores all classes alike"),
])  # fmt: skip
def test_a_row_that_may_mean_two_things_is_refused(label, classes, words):
    with pytest.raises(UsageError, match=words):
        read_items([(ONE, label)], [f"class {i}" for i in range(classes)])


class NamedItems(list):
    """Data that name their classes, in an order of their own."""

    classes = ("owl", "cat", "dog")


def test_numbers_of_data_are_over_the_names_that_the_data_have():
    """Whatever the model is over: another order, more classes, or some others."""
    data = NamedItems((image, NamedItems.classes.index(NAMES[label])) for image, label in PAIRS)
    expected = se.evaluate(tell, PAIRS, classes=NAMES).accuracy().value
    assert se.evaluate(tell, data, classes=NAMES).accuracy().value == expected
    more = ["elk", *NAMES]

    def tell_more(images):
        return np.concatenate([np.zeros((len(images), 1)), tell(images)], axis=1)

    assert se.evaluate(tell_more, data, classes=more).accuracy().value == expected
    with pytest.raises(UsageError, match="owl"):  # the model has no class for it
        se.evaluate(tell, data, classes=["cat", "dog", "elk"])
    # as many other words are names for the same
    assert read_items(data, ["Eule", "Katze", "Hund"]).classes.names == ("Eule", "Katze", "Hund")


def test_the_synonyms_of_a_class_are_one_name():
    data = NamedItems([(ONE, 0), (ONE, 1)])
    data.classes = [("tench", "Tinca tinca"), ("goldfish",)]
    assert read_items(data).classes.names == ("tench, Tinca tinca", "goldfish")


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_tensors_of_a_network_in_training_are_scores(kind):
    """With a gradient, and of a kind that NumPy lacks."""
    scores = torch.tensor([[1.0, 2.0, 0.0]], dtype=kind, requires_grad=True)
    run = se.evaluate(lambda images: scores.repeat(len(images), 1), [(ONE, "dog")], classes=NAMES)
    assert run.accuracy().value == 1


def test_a_class_without_a_score_is_only_never_the_best():
    def mask(images):
        return np.tile([-np.inf, 0.5, 0.1], (len(images), 1))

    assert se.evaluate(mask, [(ONE, "dog")], classes=NAMES).accuracy().value == 1


def test_operators_and_levels_are_lists_or_text():
    names = ("operators", "levels")
    options = [
        ("jpeg_compression, pixelate", "0, 2, 4"),
        (["jpeg_compression", "pixelate"], [0, 2, 4]),
        (["jpeg_compression", "pixelate"], range(0, 5, 2)),
    ]
    first, *others = (
        se.evaluate(tell, PAIRS, classes=NAMES, **dict(zip(names, pair, strict=True))).results()
        for pair in options
    )
    assert len({name.partition("(")[0] for name in first}) > 1
    assert all(other == first for other in others)
    single = se.evaluate(tell, PAIRS, classes=NAMES, operators="pixelate", levels=2)
    assert set(single.predictions.tags["level"]) == {0, 2}


@pytest.mark.parametrize(("options", "words"), [
    ({"classes": set(NAMES)}, "classes is .*give a list of names in the order of the model"),
    ({"classes": {0: "cat"}}, "classes is .0: 'cat'.; give a list"),
    ({"classes": 3}, "classes is 3; give a list"),
    ({"workers": "2"}, "workers is '2', which has the wrong type"),
    ({"on_error": True}, "on_error is True, which has the wrong type"),
    ({"cache": 3}, "cache is 3, which has the wrong type"),
    ({"seed": "x"}, "seed is 'x', which has the wrong type"),
])  # fmt: skip
def test_options_of_another_type_are_refused_in_one_line(options, words):
    """A set was taken in whatever order it came."""
    with pytest.raises(UsageError, match=words) as error:
        se.evaluate(tell, PAIRS, **{"classes": NAMES} | options)
    assert "\n" not in str(error.value)


def test_classes_are_arrays_tuples_and_files_too(tmp_path):
    path = tmp_path / "classes.txt"
    path.write_text("\n".join(NAMES))
    for classes in (np.array(NAMES), tuple(NAMES), path, str(path)):
        assert se.evaluate(tell, PAIRS, classes=classes).predictions.classes == tuple(NAMES)


def test_data_of_python_have_nothing_to_measure():
    with pytest.raises(UsageError, match="measure takes a source, not a list; data of Python has"):
        se.evaluate(tell, PAIRS, classes=NAMES).measure(PAIRS)


def test_data_that_change_are_not_evaluated(tmp_path):
    class Random(Photos):
        def __init__(self):
            self.draws = np.random.default_rng(0)

        def __getitem__(self, index):
            return self.draws.random((8, 8, 3)), 0

    with pytest.raises(UsageError, match="another image before; leave random transforms out"):
        se.evaluate(tell, Random())
    data = [(pixels, NAMES[label]) for pixels, label in PAIRS]
    se.evaluate(tell, data, out=tmp_path / "run")
    pixels = data[3][0].copy()
    pixels[0, 0] ^= 1
    with pytest.raises(UsageError, match="items"):
        se.evaluate(tell, [*data[:3], (pixels, data[3][1]), *data[4:]], out=tmp_path / "run")
    with pytest.raises(UsageError, match="items"):
        se.evaluate(tell, [*data[:3], (data[3][0], "cat"), *data[4:]], out=tmp_path / "run")


def test_a_dataset_of_tensors_and_what_the_run_says_of_it(tmp_path):
    images = torch.from_numpy(np.stack([image[:, :20] for image in draw()])).permute(0, 3, 1, 2)
    run = se.evaluate(tell, TensorDataset(images, torch.tensor(LABELS)), classes=NAMES)
    assert run.accuracy().n == len(LABELS)
    assert run.predictions.data == "tensordataset"
    assert run.predictions.ids[0] == "tensordataset/00000000"
    run.report(tmp_path / "report.html")
    assert "tensordataset" in (tmp_path / "report.html").read_text()


class Damaged:
    """Photos of which one is not given, one is a file cut off and one is a file that is missing."""

    classes = NAMES

    def __init__(self, folder, boxes=False):
        self.paths = {3: folder / "cut.png", 5: folder / "missing.png"}
        Image.fromarray(draw()[3]).save(self.paths[3])
        self.paths[3].write_bytes(self.paths[3].read_bytes()[:200])
        self.boxes = boxes

    def __len__(self):
        return len(LABELS)

    def __getitem__(self, index):
        if index == 0:
            raise OSError("the disk is away")
        label = LABELS[index]
        if self.boxes:
            label = {"boxes": [[0, 0, 9, 9]], "labels": [label]}
        return self.paths.get(index, draw()[index]), label


def test_items_that_cannot_be_read_are_rows_with_their_reason(tmp_path):
    run = se.evaluate(tell, Damaged(tmp_path), on_error="skip")
    rows = run.rows().to_pylist()
    errors = [row["error"] for row in rows]
    assert [i for i, error in enumerate(errors) if error] == [0, 3, 5]
    assert errors[0] == "item 0 of the data cannot be read: OSError: the disk is away"
    assert "cannot decode the PNG" in errors[3]
    assert "cannot read the image" in errors[5]
    whole = se.evaluate(tell, Photos()).rows().to_pylist()
    good = [1, 2, 4, 6, 7]
    assert [rows[i]["right"] for i in good] == [whole[i]["right"] for i in good]
    assert run.accuracy().n == 5
    assert [row["labels"] for row in rows][:4] == [None, ["owl"], ["dog"], ["dog"]]
    source = read_items(Damaged(tmp_path), skip_unreadable=True)
    assert source.notes[1].startswith("3 images that cannot be read, first: item 0 of the data")
    with pytest.raises(SampleError, match="the disk is away"):
        se.evaluate(tell, Damaged(tmp_path))


def test_boxes_of_items_that_cannot_be_read_are_left_out(tmp_path):
    def detect(images):
        return [([[0.0, 0, 9, 9]], [0.9], ["cat"]) for _ in images]

    run = se.evaluate(detect, Damaged(tmp_path, boxes=True), on_error="skip")
    rows = run.rows().to_pylist()
    assert [i for i, row in enumerate(rows) if row["error"]] == [0, 3, 5]
    assert [len(row["boxes"]) for row in rows] == [0, *[1] * 7]
    assert run.map().n == 5


def test_normalised_pixels_are_not_skipped():
    with pytest.raises(SampleError, match="as they are before Normalize"):
        se.evaluate(tell, [(draw()[0] / 255 - 0.5, "cat")], on_error="skip")
