"""The contracts of every kind of plugin, tested on all plugins of the package."""

import pytest
import tiny_sources
import title_worlds
from conftest import ROOT

from steadyeye import testing
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec, parse
from steadyeye.runner.validate import readable

IN_OTHER_FILES = {
    "metrics": {
        "hota": "metrics/sequences/test_true_tracks.py",
        "idf1": "metrics/sequences/test_true_tracks.py",
    },
    "sources": {
        "imagenet_vid": "data/sources/test_boxed_sources.py",
        "imagenet_vid_robust": "runner/test_runs.py",
        "nao": "report/analyses/test_nao.py",
        "open_images": "data/open_images/test_open_images.py",
        "photo_bursts": "data/sources/test_photo_bursts.py",
        "reviewed": "review/test_review_boxes.py",
        "ytbb_robust": "runner/test_runs.py",
    },
    "models": {
        "hf": "models/backends/test_model_libraries.py",
        "keras": "models/backends/test_model_libraries.py",
        "litert": "models/runtimes/test_deployed.py",
        "onnx": "models/runtimes/test_model_runtimes.py",
        "open_clip": "models/backends/test_zero_shot.py",
        "openvino": "models/runtimes/test_deployed.py",
        "timm": "models/backends/test_model_libraries.py",
        "torch": "models/runtimes/test_model_runtimes.py",
        "torchvision": "models/backends/test_model_libraries.py",
        "ultralytics": "integrations/check_ultralytics.py",
        "zero_shot": "models/backends/test_zero_shot.py",
        "zero_shot_detector": "models/backends/test_zero_shot.py",
    },
    "operators": {
        "callable": "degradation/test_degrade.py",
        "gradient_descent": "degradation/test_degrade.py",
        **dict.fromkeys(
            ("albumentations", "kornia", "nrtk"), "degradation/test_library_transforms.py"
        ),
    },
    "probes": {
        "background": "explain/test_probe_contracts.py",
        "blind_spots": "explain/test_probe_contracts.py",
        "integrated_gradients": "explain/test_probe_contracts.py",
    },
    "analyses": {
        "attribution": "explain/test_probe_contracts.py",
        "blind_spots": "explain/test_probe_contracts.py",
    },
}
"""Plugins whose files or networks are made in other tests: kind → name → test."""
CHECKS = {kind: f"check_{kind.removesuffix('s')}(" for kind in IN_OTHER_FILES}
CHECKS["analyses"] = "check_analysis("


def own(kind):
    """The plugins of a kind that are tried here."""
    return [name for name in plugins.own_names(kind) if name not in IN_OTHER_FILES.get(kind, {})]


@pytest.fixture(scope="module")
def tables():
    """Predictions of every kind: plain, of videos, swept, detected, probed."""
    examples = [testing.example_predictions(margin=margin) for margin in (1.0, 0.5)]
    examples += [testing.example_predictions(margin=0.5, k=10), testing.example_video()]
    examples += [testing.example_sweep(), testing.example_detections(), testing.example_tracks()]
    examples.append(testing.example_corruptions())
    examples += [testing.example_true_tracks(), testing.example_detector_sweep()]
    return [*examples, *(group[0] for group in title_worlds.worlds("tiny"))]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "check"), [
    ("metrics", testing.check_metric), ("analyses", testing.check_analysis)
])  # fmt: skip
def test_metrics_and_analyses_fulfil_their_contract(kind, check, tables):
    for name in own(kind):
        plugin = plugins.load(kind, name)
        least = plugins.declaration(kind, name).largest_offset
        fitting = [table for table in tables if readable(plugin, table.columns)]
        fitting = [table for table in fitting if not least or max(table.tags["offset"]) >= least]
        # of some that ask for more the tables are made elsewhere
        fitting = [table for table in fitting if not plugin.when or plugin.when(table)] or fitting
        assert fitting, name
        for table in fitting:
            assert check(plugin, table)


def test_a_metric_does_not_depend_on_the_order_of_rows():
    for name in ("accuracy", "pm_k", "drop", "flip_rate", "self_consistency"):
        assert testing.check_metric(plugins.load("metrics", name))


@pytest.mark.slow
@pytest.mark.parametrize("name", own("operators"))
def test_operators_fulfil_their_contract(name):
    assert testing.check_operator(plugins.build("operators", Spec(name)))


@pytest.mark.parametrize("name", own("sources"))
def test_sources_fulfil_their_contract(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "index"))
    spec, _ = tiny_sources.KINDS[name](tmp_path / "data")
    assert testing.check_source(plugins.build("sources", parse(spec)))


@pytest.mark.slow
@pytest.mark.parametrize("name", own("models"))
def test_models_fulfil_their_contract(name, tmp_path, test_data):
    (tmp_path / "two.json").write_text('["a", "b"]')
    arguments = {
        "callable": {"path": "toy_networks:brightness"},
        "callable_detector": {
            "path": "explain_toys:detector", "classes": str(tmp_path / "two.json")
        },
        "onnx_detector": {
            "path": str(test_data / "models" / "yolox_nano.onnx"), "decoder": "yolox"
        },
    }  # fmt: skip
    assert testing.check_model(plugins.build("models", Spec(name, arguments.get(name, {}))))


@pytest.mark.parametrize("name", own("probes"))
def test_probes_fulfil_their_contract(name):
    assert testing.check_plugin("probes", name)


@pytest.mark.parametrize("name", IN_OTHER_FILES["probes"])
def test_probes_that_need_more_say_so(name):
    with pytest.raises(UsageError) as error:
        testing.check_plugin("probes", name)
    assert not isinstance(error.value, testing.ContractError)


@pytest.mark.parametrize("kind", IN_OTHER_FILES)
def test_the_others_are_tried_in_other_files(kind):
    assert set(IN_OTHER_FILES[kind]) <= set(plugins.own_names(kind))
    for name, file in IN_OTHER_FILES[kind].items():
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert name in text
        assert CHECKS[kind] in text, file
