"""Code named by a folder or file of others is not run unless the user names it too.

Each attack would write a marker; if the user allows it the marker is written, so that its absence
is meaningful.
"""

import json
import sys
import zipfile
from contextlib import suppress
from importlib.util import find_spec

import numpy as np
import pytest
import tiny_vit
import torch
import toy_networks
from fixtures.tiny_sources import of_image_folder
from safetensors import safe_open

from steadyeye import allow_code
from steadyeye.core import code_permission, plugins
from steadyeye.core.code_permission import check_code, distrust
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec, parse
from steadyeye.core.storage.files import encode_record, sha256, write_file
from steadyeye.models.finetuned import checkpoint_format
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes.classifier import Recipe
from steadyeye.runner.measure import rebuilt

NAMES = [f"class {i}" for i in range(10)]
RECIPE = Recipe(Preprocessing((32, 32), 32, (0.0,) * 3, (1.0,) * 3))


@pytest.fixture(autouse=True)
def nothing_is_allowed_yet(monkeypatch):
    monkeypatch.setattr(code_permission, "_allowed_names", set())


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A module that leaves a marker when it is imported; its name, and the marker."""
    folder, marker = tmp_path / "modules", tmp_path / "marker"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    name = f"evil_{abs(hash(str(tmp_path)))}"
    (folder / f"{name}.py").write_text(
        f"open({str(marker)!r}, 'w').close()\n"
        "from toy_networks import net\n"
        "def images(batch):\n    return net()(batch)\n"
        "def source(root):\n"
        "    from steadyeye.data.sources.image_folder import image_folder\n"
        "    return image_folder(root=root)\n"
    )
    yield name, marker
    sys.modules.pop(name, None)


class Marker:
    """A network that leaves a marker when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def trained(folder, build):
    """The folder of a trained classifier that says it was built from `build`."""
    record = {
        "kind": "classifier",
        "base": {"spec": build, "name": "net", "fingerprint": "0"},
        "build": build,
        "classes": {"names": NAMES, "wnids": None},
        "several": False,
        "recipe": RECIPE.record(),
        "bare": True,
        "head": {"kept": True},
    }
    checkpoint_format.write(folder, json.loads(json.dumps(record)), toy_networks.net().state_dict())
    return f"torch(path='{folder}', runtime='torch')"


def attempt(spec, kind="models"):
    return plugins.build(kind, parse(spec))


def refused_then_allowed(spec, marker, name, kind="models"):
    """Tries a spec before and after the user allows what its refusal says."""
    with pytest.raises(UsageError) as raised:
        attempt(spec, kind)
    text = str(raised.value)
    assert "\n" not in text
    assert f"add --allow-code '{name}'" in text
    assert not marker.exists()
    allow_code(name)
    try:
        return attempt(spec, kind)
    finally:
        assert marker.exists(), "the attack does nothing even when it is allowed"


def test_a_trained_folder_names_a_module(evil, tmp_path):
    name, marker = evil
    build = f"torch(path='py:{name}:net', classes='{classes(tmp_path)}')"
    model = refused_then_allowed(trained(tmp_path / "trained", build), marker, f"{name}:net")
    assert model.name == "trained"
    images = [np.zeros((32, 32, 3), np.uint8)]
    assert model(images).shape == (1, 10)


def classes(folder):
    (folder / "classes.txt").write_text("\n".join(NAMES))
    return folder / "classes.txt"


@pytest.mark.parametrize("kind", ["callable", "callable_detector", "file", "module", "nested"])
def test_a_trained_folder_names_code_in_every_other_way(kind, evil, tmp_path):
    name, marker = evil
    file = sys.path[0] + f"/{name}.py"
    builds = {
        "callable": (f"callable(path='{name}:images')", f"{name}:images"),
        "callable_detector": (f"callable_detector(path='{name}:images')", f"{name}:images"),
        "file": (f"{file}:images(batch=1)", f"{file}:images"),
        "module": (f"{name}:images(batch=1)", f"{name}:images"),
    }
    if kind == "nested":
        inner = trained(tmp_path / "inner", builds["callable"][0])
        build, code_path = inner, builds["callable"][1]
    else:
        build, code_path = builds[kind]
    # what it gives is no torch network, which is found out only after it was run
    with pytest.raises(
        Exception, match=r"no longer a torch model|numpy|dtype|must be Tensor|cannot build"
    ):
        refused_then_allowed(trained(tmp_path / "trained", build), marker, code_path)


@pytest.mark.parametrize("kind", ["pickle", "pt2 weights"])
def test_a_trained_folder_allows_its_own_pickle(kind, tmp_path):
    marker, file = tmp_path / "marker", tmp_path / "trained" / "base.pt"
    file.parent.mkdir()
    if kind == "pickle":
        file.write_bytes(b"")
        torch.save(Marker(marker), file)
    else:
        file = exported(file.with_suffix(".pt2"), marker)
    build = f"torch(path='{file}', classes='{classes(tmp_path)}', allow_pickle=True)"
    spec = trained(tmp_path / "trained", build)
    with pytest.raises(UsageError, match=r"is built from"):
        refused_then_allowed(spec, marker, str(file))


def exported(path, marker):
    """An exported program whose example inputs are a pickle that leaves a marker."""
    inner = path.with_name("whole.pt2")
    program = torch.export.export(toy_networks.net(), (torch.zeros(1, 3, 32, 32),))
    torch.export.save(program, inner)
    with zipfile.ZipFile(inner) as old, zipfile.ZipFile(path, "w") as new:
        for item in old.infolist():
            content = old.read(item)
            if "sample_inputs" in item.filename:
                buffer = path.with_name("inputs.pt")
                torch.save(Marker(marker), buffer)
                content = buffer.read_bytes()
            new.writestr(item.filename, content)
    return path


def test_an_exported_program_runs_nothing_unless_the_user_says_so(tmp_path):
    marker = tmp_path / "marker"
    file = exported(tmp_path / "net.pt2", marker)
    spec = f"torch(path='{file}', classes='{classes(tmp_path)}'"
    with pytest.raises(UsageError, match="add allow_pickle=True"):
        attempt(f"{spec})")
    assert not marker.exists()
    with suppress(UsageError):  # what is left of the file after the attack may be none
        attempt(f"{spec}, allow_pickle=True)")
    assert marker.exists()


def test_weights_of_a_trained_folder_are_no_pickle(tmp_path):
    marker = tmp_path / "marker"
    spec = trained(tmp_path / "trained", "timm(name='resnet18', pretrained=False)")
    weights = tmp_path / "trained" / checkpoint_format.WEIGHTS
    torch.save({"a": Marker(marker)}, weights)
    record = checkpoint_format.content(tmp_path / "trained")
    changed = {**record, "sha256": sha256(weights)}
    write_file(tmp_path / "trained" / checkpoint_format.FILE, encode_record(changed))
    with pytest.raises(UsageError, match="pickled objects"):
        attempt(spec)
    assert not marker.exists()
    torch.load(weights, weights_only=False)
    assert marker.exists()


@pytest.mark.parametrize("kind", ["file", "module"])
def test_the_data_of_a_run_name_code(kind, evil, tmp_path):
    name, marker = evil
    of_image_folder(tmp_path / "images")
    home = sys.path[0] + f"/{name}.py" if kind == "file" else name
    spec = f"{home}:source(root='{tmp_path / 'images'}')"
    data = {"spec": spec, "fingerprint": "0"}
    with pytest.raises(UsageError, match=r"asks to run .* add --allow-code"):
        rebuilt(tmp_path / "run", data)
    assert not marker.exists()
    allow_code(f"{home}:source")
    with pytest.raises(UsageError, match="changed since the run"):
        rebuilt(tmp_path / "run", data)
    assert marker.exists()


def test_the_files_of_a_package_are_found_without_importing_it(evil):
    name, marker = evil
    with pytest.raises(UsageError, match="needs the package"):
        attempt(f"every_frame(path='package:{name}.inner/a.mp4')", "sources")
    assert not marker.exists()
    with pytest.raises(ModuleNotFoundError):
        find_spec(f"{name}.inner.deeper")
    assert marker.exists()


def test_files_may_name_code_that_the_user_has_used(evil):
    name, _ = evil
    attempt(f"callable(path='{name}:images')")
    with distrust("model.json"):
        check_code(f"py:{name}:images")
        with pytest.raises(UsageError, match="asks to run"):
            check_code(f"{name}:source")


def test_one_file_by_two_paths_is_one(tmp_path, monkeypatch):
    (tmp_path / "plugins.py").write_text("")
    monkeypatch.chdir(tmp_path)
    allow_code("plugins.py:metric", "net.pt")
    with distrust("run.json"):
        check_code(f"{tmp_path}/plugins.py:metric")
        check_code(f"{tmp_path}/net.pt")


def test_a_keras_file_of_an_older_format_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"is no \.keras file"):
        plugins.build(
            "models",
            Spec("keras", {"path": "net.h5", "classes": "coco", "recipe": {"mean": 0, "std": 1}}),
        )


ATTACKED = {
    "a kind of model that nobody knows": {"model_type": "evil"},
    "a kind of model that the library has": {},
    "a detector": {"architectures": ["EvilForObjectDetection"]},
}


def save_hf(folder, marker, **config):
    """A folder of transformers that names code of its own for all that is loaded; its spec."""
    processor = {"image_processor_type": "ViTImageProcessor", "size": {"height": 64, "width": 64}}
    tiny_vit.save_vit(folder, processor, ["cat", "dog"])
    (folder / "evil.py").write_text(
        f"open({str(marker)!r}, 'w').close()\n"
        "from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor\n"
        "class Config(ViTConfig):\n    model_type = 'evil'\n"
        "class Network(ViTForImageClassification):\n    config_class = Config\n"
        "class Processor(ViTImageProcessor):\n    pass\n"
    )
    class_names = {
        "config.json": {
            "AutoConfig": "evil.Config",
            "AutoModelForImageClassification": "evil.Network",
            "AutoModelForObjectDetection": "evil.Network",
            "AutoImageProcessor": "evil.Processor",
        },
        "preprocessor_config.json": {"AutoImageProcessor": "evil.Processor"},
    }
    for file, names in class_names.items():
        content = json.loads((folder / file).read_text())
        more = config if file == "config.json" else {}
        (folder / file).write_text(json.dumps({**content, "auto_map": names, **more}))
    return f"hf(name='{folder}', runtime='torch')"


@pytest.mark.parametrize("kind", ATTACKED)
def test_a_folder_of_transformers_names_code_of_its_own(kind, tmp_path, torchvision, monkeypatch):
    import transformers

    code = transformers.dynamic_module_utils
    monkeypatch.setattr(code, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # it would ask whether it may
    marker = tmp_path / "marker"
    spec = save_hf(tmp_path / "vit", marker, **ATTACKED[kind])
    for _ in range(2):
        with suppress(UsageError):  # what the library has itself it may build
            attempt(spec)
        assert not marker.exists()
        # no name lets a folder of transformers run its code: none stands for it
        allow_code(str(tmp_path / "vit"), "evil:Network", str(tmp_path / "vit" / "evil.py"))
    with suppress(ValueError, ImportError):
        transformers.AutoImageProcessor.from_pretrained(tmp_path / "vit", trust_remote_code=True)
    assert marker.exists(), "the attack does nothing even when it is allowed"


@pytest.mark.parametrize("model", ["evil", "yolos"])
def test_a_trained_detector_names_code_of_its_library(model, tmp_path, torchvision, monkeypatch):
    import transformers

    monkeypatch.setattr(
        transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules")
    )
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # it would ask whether it may
    marker = tmp_path / "marker"
    save_hf(tmp_path / "vit", marker)
    home = f"{tmp_path / 'vit'}--evil"
    config = {
        "model_type": model,
        "architectures": ["EvilForObjectDetection"],
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "auto_map": {
            "AutoConfig": f"{home}.Config",
            "AutoModelForObjectDetection": f"{home}.Network",
        },
    }
    processor = {
        "image_processor_type": "YolosImageProcessor",
        "auto_map": {"AutoImageProcessor": f"{home}.Processor"},
    }
    record = {
        "kind": "detector",
        "base": {"spec": "hf(name='evil')", "name": "evil", "fingerprint": "0"},
        "build": "hf(name='evil')",
        "classes": {"names": ["cat", "dog"], "wnids": None},
        "detector": {"library": "transformers", "config": config, "processor": processor},
    }
    checkpoint_format.write(tmp_path / "trained", record, toy_networks.net().state_dict())
    fault = r"transformers cannot build|cannot build the model|does not fit|asks for a network"
    with pytest.raises(UsageError, match=fault):
        attempt(f"torch(path='{tmp_path / 'trained'}', runtime='torch')")
    assert not marker.exists()


@pytest.mark.parametrize("name", ["../other/model.safetensors", "ABSOLUTE", "a/../../x", 3])
def test_weights_of_a_folder_of_transformers_lie_in_it(name, tmp_path, torchvision):
    from transformers import ViTForImageClassification

    processor = {"image_processor_type": "ViTImageProcessor", "size": {"height": 64, "width": 64}}
    for folder in ("vit", "other"):
        tiny_vit.save_vit(tmp_path / folder, processor, ["cat", "dog"])
    spec = f"hf(name='{tmp_path / 'vit'}', runtime='torch')"
    attempt(spec)
    weights = tmp_path / "other" / "model.safetensors"
    with safe_open(weights, framework="pt") as content:
        keys = list(content.keys())
    (tmp_path / "vit" / "model.safetensors").unlink()
    index = tmp_path / "vit" / "model.safetensors.index.json"

    def point(file):
        index.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(keys, file)}))

    point(str(weights) if name == "ABSOLUTE" else name)
    with pytest.raises(UsageError, match="which are no file next to it"):
        attempt(spec)
    if name == "ABSOLUTE" or "other" in str(name):
        ViTForImageClassification.from_pretrained(tmp_path / "vit")  # what the library itself reads
    weights.rename(tmp_path / "vit" / "part.safetensors")
    point("part.safetensors")
    attempt(spec)
    index.write_text("[]")
    with pytest.raises(UsageError, match="has no weight_map"):
        attempt(spec)


@pytest.mark.parametrize("kind", ["class", "function", "lambda", "layer"])
def test_a_keras_file_names_code(kind, evil, tmp_path):
    from steadyeye.models.backends.keras import keras_library as keras

    name, marker = evil
    names = {"class": "Network", "function": "net", "lambda": "__lambda__", "layer": "Layer"}
    config = {
        "module": name,
        "class_name": names[kind],
        "config": {},
        "registered_name": names[kind],
    }
    if kind == "lambda":
        code = keras.src.utils.python_utils.func_dump(lambda x: open(x, "w"))  # noqa: SIM115
        dumped = dict(zip(("code", "defaults", "closure"), code, strict=True))
        function = {"class_name": "__lambda__", "config": dumped}
        inner = {"name": "a", "function": function, "arguments": {"x": str(marker)}}
        config = {"module": "keras.layers", "class_name": "Lambda", "config": inner}
    if kind == "layer":
        inner = {"name": "a", "layers": [config]}
        config = {"module": "keras", "class_name": "Sequential", "config": inner}
    path = tmp_path / "net.keras"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("config.json", json.dumps(config))
        file.writestr("metadata.json", "{}")
        file.writestr("model.weights.h5", bytes(100))
        file.writestr(f"../{name}.py", "")
        file.writestr(f"/{tmp_path}/slipped", "")
    recipe = {"mean": 0, "std": 255}
    spec = Spec("keras", {"path": str(path), "classes": str(classes(tmp_path)), "recipe": recipe})
    with pytest.raises(UsageError, match=r"cannot load the Keras model '.*net\.keras'"):
        plugins.build("models", spec)
    assert not marker.exists()
    assert not (tmp_path / "slipped").exists()
    __import__(name)
    assert marker.exists(), "the attack does nothing even when it is allowed"
