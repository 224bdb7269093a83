"""The contracts of probes and their analyses that need files or gradients, on real explanations."""

import json

import blind_toys
import explain_toys
import pytest
import toy_detectors

from steadyeye import testing
from steadyeye.core import plugins
from steadyeye.core.spec import parse
from steadyeye.explain import run as explaining
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent


def squares(root):
    data = explain_toys.write(root / "squares", images=2)
    classes = root / "squares" / "classes.json"
    return (data,), f"callable_detector(path='explain_toys:detector', classes='{classes}')"


def photos(root):
    return (toy_detectors.write(root),), "callable_detector(path='toy_detectors:looks_inside')"


def colours(root):
    data = blind_toys.write(root, "data", ["red", "green", "blue"] * 12, 1)
    reference = blind_toys.write(root, "usual", ["red", "green"] * 20, 2)
    (root / "classes.json").write_text(json.dumps(list(blind_toys.CLASSES)))
    model = f"callable_detector(path='blind_toys:detector', classes='{root}/classes.json')"
    return (data, reference), model


EMBEDDER = "embedder=\"callable(path='blind_toys:means', size=16)\""
CASES = {
    "background": (squares, "background(folder='{root}/squares/behind')"),
    "blind_spots": (colours, f"blind_spots({EMBEDDER})"),
    "occlusion": (squares, "attribution(probe='occlusion')"),
    "integrated_gradients": (photos, "attribution(probe='integrated_gradients')"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_probes_and_their_analyses(name, tmp_path, monkeypatch):
    write, analysis = CASES[name]
    data, model = write(tmp_path)
    checked = []

    def check_and_run(pair, subject, spec):
        probe = plugins.load("probes", spec.name)
        checked.append((spec.name, testing.check_probe(probe, spec, subject)))
        return run_probe(pair, subject, spec)

    run_probe = explaining.ExplainedPair.run_probe
    monkeypatch.setattr(explaining.ExplainedPair, "run_probe", check_and_run)
    job = Job((model,), data, str(tmp_path / "run"), workers=1)
    analysis = analysis.format(root=tmp_path)
    plan = explaining.check(job, explaining.Explaining(analysis, *data[1:]))
    explained = explaining.explain(plan, Silent())
    assert len(checked) == 1
    (table,) = [
        evaluation.predictions for evaluation in explained.evaluated if evaluation.predictions.probe
    ]
    assert testing.check_analysis(plugins.load("analyses", parse(analysis).name), table)
