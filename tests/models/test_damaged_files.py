"""Damaged model files that were once accepted silently, or not refused in one line."""

import json
import pickle
import resource
import tracemalloc
import zipfile

import numpy as np
import pytest
import tiny_onnx
import tiny_vit
import torch
import toy_networks
from safetensors.torch import load_file, save_file

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes import torch_export
from steadyeye.models.runtimes.classifier import read_recipe, softmax
from steadyeye.models.runtimes.weights import check_pickles, load_module, state_dict
from steadyeye.runner.cache.codec import CHECK, CachedAnswer, _checksum, decode, encode

VIT = {"image_processor_type": "ViTImageProcessor", "size": {"height": 64, "width": 64}}


def build(backend, **options):
    return plugins.build("models", Spec(backend, options))


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("\n".join(f"class {i}" for i in range(10)))
    return path


def test_an_error_of_a_class_list_names_the_model_and_the_list(names):
    net = names.with_name("net.onnx")
    tiny_onnx.save_classifier(net)
    names.write_text("cat\ndog")
    with pytest.raises(
        UsageError, match="scores have 10 columns but the class list has 2"
    ) as error:
        build("onnx", path=str(net), classes=str(names))
    assert str(net) in str(error.value)
    assert str(names) in str(error.value)


def test_infinite_logits_are_no_probabilities():
    """NaN, which a run tells of as a fault of the sample; of numbers as it always was."""
    logits = np.array([[np.inf, 1], [np.inf, np.inf], [-np.inf, 1], [3e38, -3e38]], np.float32)
    scores = softmax(logits)
    assert np.isnan(scores[:2]).any(axis=1).all()
    np.testing.assert_array_equal(scores[2:], [[0, 1], [1, 0]])


def test_a_torchscript_file_cannot_ask_for_any_memory(tmp_path):
    whole, bad = tmp_path / "whole.pt", tmp_path / "bad.pt"
    torch.jit.trace(toy_networks.net(), torch.zeros(1, 3, 32, 32)).save(whole)
    assert load_module(str(whole)) is not None
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(bad, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("/constants.pkl"):
                # an empty tuple that is to be kept at place 2^28, 8 GB of places
                content = pickle.PROTO + b"\x02)r" + (2**28).to_bytes(4, "little") + b"."
            new.writestr(name, content)
    with pytest.raises(UsageError, match=r"bad\.pt': .*numbers an object 268435456; save it again"):
        load_module(str(bad))


RANGE = (0, (([1, 0], 1, 4), 30, 61), 1)
TABLE = ("FORMAT_WITH_STRING_TABLE", ("", "text"))


@pytest.mark.parametrize(("ranges", "fine"), [
    ((*TABLE, (RANGE,)), True),
    ((*TABLE, ()), True),
    (((0, (("text", None, 0), 0, 4)), (3, (("text", "file.py", 1), 0, 1), 2)), True),
    ((*TABLE, ((0, (([2, 0], 1, 4), 30, 61), 1),)), False),  # no third text
    ((*TABLE, ((0, (([-1], 1, 4), 30, 61), 1),)), False),
    ((*TABLE, ((0, (("text", 1, 4), 30, 61), 1),)), False),
    ((*TABLE, ((0, (([1], 1, 4), 61, 30), 1),)), False),
    ((*TABLE, ((0, (([1], 1, 4), 30, 2**63), 1),)), False),
    ((*TABLE, ((0, (([1], 1, 4), 30, 61.0), 1),)), False),
    ((*TABLE, (RANGE, 7)), False),
    ((*TABLE, [RANGE]), False),
    ((TABLE[0], (1, 2), (RANGE,)), False),
    (((0, ((5, None, 0), 0, 4)),), False),
    ("text", False),
])  # fmt: skip
def test_source_ranges_that_torch_would_not_survive_are_refused(ranges, fine, tmp_path):
    file = tmp_path / "net.pt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("net/code/__torch__/net.py.debug_pkl", pickle.dumps(ranges, 2))
    if fine:
        check_pickles(file)
        return
    with pytest.raises(ValueError, match="holds no source ranges"):
        check_pickles(file)


def test_source_ranges_name_no_class(tmp_path):
    file = tmp_path / "net.pt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("net/code/net.py.debug_pkl", pickle.dumps(toy_networks.brightness))
    with pytest.raises(ValueError, match=r"it names toy_networks\.brightness"):
        check_pickles(file)


def test_a_text_of_an_old_checkpoint_is_no_longer_than_the_file(tmp_path):
    path = tmp_path / "net.pth"
    torch.save(toy_networks.net().state_dict(), path, _use_new_zipfile_serialization=False)
    assert set(state_dict(path)) == set(toy_networks.net().state_dict())
    content = path.read_bytes()
    at = content.index(b"X\x10\x00\x00\x00protocol_version")
    path.write_bytes(content[: at + 1] + b"\xff\xff\xff\xff" + content[at + 5 :])
    tracemalloc.start()
    with pytest.raises(UsageError, match=r"net\.pth' is no file of torch\.save"):
        state_dict(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**26


def test_missing_weights_are_not_initialised_at_random(tmp_path, torchvision):
    folder = tmp_path / "vit"
    tiny_vit.save_vit(folder, VIT, ["cat", "dog"])
    build("hf", name=str(folder), runtime="torch")
    weights = load_file(folder / "model.safetensors")
    weights.pop("classifier.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UsageError, match=r"the weights of '.*vit' lack classifier\.weight; give"):
        build("hf", name=str(folder), runtime="torch")


@pytest.mark.parametrize(
    "size",
    [
        *({"height": 60_000, "width": 60_000}, {"shortest_edge": 60_000}),
        *({"height": 0, "width": 1}, {"height": 2, "width": 10_000_000}),
    ],
)
def test_a_processor_cannot_ask_for_any_memory(size, tmp_path, torchvision):
    folder = tmp_path / "vit"
    tiny_vit.save_vit(folder, {**VIT, "size": size}, ["cat", "dog"])
    with pytest.raises(UsageError, match=r"size of the image processor of '.*vit' is \("):
        build("hf", name=str(folder), runtime="torch")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": (0, 32)}, "size of a model's input is"),
        ({"size": (-5, 32)}, "size of a model's input is"),
        ({"size": (10**5, 10**5)}, "at most 33,554,432 pixels"),
        ({"size": (True, 1.5)}, "size of a model's input is"),
        ({"resize": (0, 0)}, "resize is"),
        ({"mean": (float("nan"), 0.0, 0.0)}, "three numbers"),
        ({"std": (1.0, float("inf"), 1.0)}, "three numbers"),
        ({"std": (1.0, 0.0, 1.0)}, "not above 0"),
        ({"mean": (1.0, 1.0)}, "three numbers"),
    ],
)
def test_a_recipe_of_no_sense_is_refused(options, words):
    whole = {"size": (32, 32), "resize": 32, "mean": (0.0,) * 3, "std": (1.0,) * 3}
    Preprocessing(**whole)
    with pytest.raises(UsageError, match=words):
        Preprocessing(**(whole | options))


def test_a_very_long_image_has_no_side_of_nothing(tmp_path, names):
    tiny_onnx.save_detector(tmp_path / "net.onnx")
    options = {"decoder": "boxes", "classes": str(names), "recipe": {"fit": "letterbox"}}
    model = build("onnx_detector", path=str(tmp_path / "net.onnx"), **options)
    (detections,) = model([np.zeros((1, 4000, 3), np.uint8)])
    assert len(detections) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"note": 3}', "[" * 100_000, "\udcff"])
def test_a_damaged_note_of_an_export_is_forgotten(text, tmp_path):
    path = tmp_path / "net.refused.json"
    assert torch_export._read_note(path) is None
    path.write_text(json.dumps({"note": "why"}))
    assert torch_export._read_note(path) == "why"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert torch_export._read_note(path) is None


@pytest.mark.parametrize("head", [b"{}", b"[]", b"{", b'{"tags": 1}', b"\xff", b"[" * 100_000])
def test_an_invalid_cached_prediction_is_inferred_again(head):
    key = b"key"
    entry = encode(key, CachedAnswer(np.zeros(3, np.float32)))
    assert decode(key, entry) is not None
    assert decode(key, entry[:-1]) is None
    body = len(head).to_bytes(4, "little") + head
    assert len(_checksum(key, body)) == CHECK
    assert decode(key, _checksum(key, body) + body) is None


@pytest.mark.parametrize("kind", ["!f4", "|O", "<f4,<f4", "f4; import os", "V9999999999", 4, None])
def test_an_answer_of_the_cache_is_of_plain_numbers(kind):
    head = json.dumps({"tags": {}, "size": [4, 4], "arrays": [[kind, [1]]]}).encode()
    body = len(head).to_bytes(4, "little") + head + bytes(64)
    assert decode(b"key", _checksum(b"key", body) + body) is None


HUGE = {
    "num_hidden_layers": 2**53 + 1,
    "num_attention_heads": 10**9,
    "intermediate_size": 10**15,
    "hidden_size": 10**6,
    "image_size": 10**5,
    "num_channels": 10**7,
    "num_labels": 10**8,
}


@pytest.mark.parametrize("key", HUGE)
def test_a_configuration_cannot_ask_for_any_memory(key, tmp_path, torchvision):
    folder = tmp_path / "vit"
    tiny_vit.save_vit(folder, VIT, ["cat", "dog"])
    build("hf", name=str(folder), runtime="torch")
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: HUGE[key]}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UsageError, match="download or save it again") as error:
        build("hf", name=str(folder), runtime="torch")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10
    if HUGE[key] > 2**20:
        assert f"says {key} = {HUGE[key]}, and its weights are" in str(error.value)


BOMB = 1 << 26


def pack_bomb(whole, bomb, ending):
    """A copy of an archive in which an entry unpacks to 64 MB."""
    with zipfile.ZipFile(whole) as old:
        bombs = [name for name in old.namelist() if name.endswith(ending)]
        assert bombs
        # to pack zeros takes half as long at the lowest level
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
            for name in old.namelist():
                if name in bombs:
                    with new.open(name, "w") as entry:
                        for _ in range(16):
                            entry.write(bytes(BOMB // 16))
                else:
                    new.writestr(name, old.read(name))


def write_archive(folder, kind):
    """The file of a small network."""
    network, image = toy_networks.net(), torch.zeros(1, 3, 32, 32)
    path = folder / f"net.{'pt2' if kind == 'exported program' else 'pt'}"
    if kind == "weights":
        torch.save(network.state_dict(), path)
    elif kind == "exported program":
        torch.export.save(torch.export.export(network, (image,)), path)
    else:
        torch.jit.trace(network, image).save(path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "endings"),
    [
        ("weights", ["data.pkl", "data/0"]),
        ("module", ["data.pkl", "data/0", ".py", "constants/0"]),
        ("exported program", [".json", "weight_0"]),
    ],
)
def test_an_archive_is_not_unpacked_beyond_its_size(kind, endings, tmp_path):
    whole = write_archive(tmp_path, kind)
    bomb = tmp_path / f"bomb{whole.suffix}"
    read = (
        state_dict if kind == "weights" else lambda path: load_module(str(path), allow_pickle=True)
    )
    assert read(whole)
    for ending in [*endings, "version"]:
        pack_bomb(whole, bomb, ending)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(UsageError, match=r"bomb\.pt2?' has .* bytes and unpacks to") as error:
            read(bomb)
        assert len(str(error.value).splitlines()) == 1
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < BOMB >> 12


def test_weights_that_are_all_alike_are_no_bomb(tmp_path):
    path = tmp_path / "zeros.pth"
    torch.save({"weight": torch.zeros(8 << 20)}, path)
    assert not state_dict(path)["weight"].any()


def test_a_keras_file_asks_for_no_more_than_it_holds(tmp_path, names):
    from steadyeye.models.backends.keras import keras_library as keras

    whole, bad = tmp_path / "net.keras", tmp_path / "bad.keras"
    images = keras.Input((32, 32, 3))
    pooled = keras.layers.GlobalAveragePooling2D()(images)
    keras.Model(images, keras.layers.Dense(10, activation="softmax")(pooled)).save(whole)
    recipe = {"mean": 0, "std": 255}

    def read(path):
        return build("keras", path=str(path), classes=str(names), recipe=recipe, runtime="torch")

    assert read(whole).classes
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(bad, "w") as new:
        for name in old.namelist():
            content = old.read(name).replace(b'"units": 10', b'"units": 1000000000')
            new.writestr(name, content)
    with pytest.raises(UsageError, match=r"units = 1000000000, and its weights"):
        read(bad)
    pack_bomb(whole, bad, "model.weights.h5")
    with pytest.raises(UsageError, match="unpacks to"):
        read(bad)


def test_the_layers_of_a_keras_file_ask_together_for_no_more_than_it_holds(tmp_path, names):
    from steadyeye.models.backends.keras import keras_library as keras

    path, sizes = tmp_path / "net.keras", (1_000, 1_000_000)
    recipe = {"mean": 0, "std": 255}

    def write(units):
        """A file of two wide layers whose weights are those of narrow ones."""
        images = keras.Input((32, 32, 3))
        wide = keras.layers.Dense(units)(keras.layers.GlobalAveragePooling2D()(images))
        with keras.device("meta"):
            network = keras.Model(images, keras.layers.Dense(units)(wide))
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("config.json", network.to_json())
            file.writestr("metadata.json", "{}")
            file.writestr("model.weights.h5", bytes(4 * units))

    for units in sizes:
        write(units)
        # of the smaller one the weights are no HDF5 file, which Keras says
        message = r"asks for a network of 1,000,0\d\d,000,000" if units > 1_000 else "cannot load"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(UsageError, match=message):
            build("keras", path=str(path), classes=str(names), recipe=recipe, runtime="torch")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10


def test_a_recipe_of_the_users_own_is_read_as_before():
    settings = read_recipe({"size": 32, "mean": 0, "std": 255, "output": "probabilities"})
    assert settings.preprocessing.std == (255.0,) * 3
    with pytest.raises(UsageError, match="no output named 'x'"):
        read_recipe({"output": "x"})
