"""Plugins from outside the package: found, refused, checked, used, and changing nothing else."""

import json
import os
import sys

import explain_toys
import pytest
from conftest import TESTS
from forked import steadyeye
from outside_plugins import FILES, NAMES, install_plugins, write_plugins

from steadyeye import testing
from steadyeye.core import defaults, outside_plugins, plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec, parse, split
from steadyeye.runner.cache import answer_code

KINDS = ("sources", "models", "operators", "metrics", "analyses", "probes")


def forget_plugins():
    """Takes their modules away, so that they are imported anew."""
    of_plugins = ("steadyeye.plugin_file_", "steadyeye.core.plugin_folder.")
    for name in [name for name in sys.modules if name.startswith(of_plugins)]:
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The six plugins in `$STEADYEYE_PLUGINS`."""
    monkeypatch.setenv(outside_plugins.VARIABLE, str(tmp_path / "plugins"))
    yield write_plugins(tmp_path / "plugins")
    forget_plugins()


def test_outside_plugins_are_listed_with_their_origin_without_an_import(folder):
    for kind in KINDS:
        line = plugins.describe(kind)[NAMES[kind]]
        assert line.endswith(f"[{folder / kind / NAMES[kind]}.py]")
        with pytest.raises(UsageError, match=f"did you mean '{NAMES[kind]}'"):
            plugins.load(kind, NAMES[kind][:-1])
    assert not [name for name in sys.modules if name.startswith("steadyeye.core.plugin_folder.")]
    assert plugins.declaration("analyses", "confidence").columns == ("truth",)
    assert plugins.declaration("models", "by_brightness").answers == ("scores",)


def test_outside_plugins_are_in_no_default_set(folder):
    for kind, default in (
        ("operators", defaults.OPERATORS),
        ("metrics", defaults.METRICS),
        ("analyses", defaults.ANALYSES),
    ):
        assert set(default) <= set(plugins.own_names(kind))
        assert not {*outside_plugins.find(kind)} & {*default}


@pytest.mark.parametrize("kind", KINDS)
def test_the_contract_holds_for_them(folder, kind):
    assert NAMES[kind] in testing.check_plugin(kind, NAMES[kind]) or kind == "analyses"
    at_path = f"{folder / kind / NAMES[kind]}.py:{NAMES[kind]}"
    assert testing.check_plugin(kind, at_path)


BROKEN = {
    "operators": ("-> Image:\n", "-> Image:\n    image[0] = 0\n"),
    "metrics": ("if len(confidence) else None", "if len(confidence) else 0.0"),
    "models": ("[1 - light, light]", "[light]"),
    "sources": ('f"{i:05}" for i', '"same" for i'),
    "analyses": ("each in evaluated", "each in evaluated if not each.predictions.scores.sort()"),
    "probes": ('if step["inverted"]', 'if True'),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_the_contract_fails_for_one_that_breaks_it(folder, kind):
    file = folder / f"{kind}/{NAMES[kind]}.py"
    old, new = BROKEN[kind]
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(UsageError):
        testing.check_plugin(kind, NAMES[kind])


def test_a_broken_file_is_one_line_and_breaks_nothing_else(folder):
    (folder / "metrics" / "odd.py").write_text("def odd(predictions)\n")
    (folder / "metrics" / "failing.py").write_text('"""Fails."""\nraise OSError("no camera")\n')
    (folder / "metrics" / "empty.py").write_text('"""Nothing."""\n')
    descriptions = plugins.describe("metrics")
    assert "SyntaxError" in descriptions["odd"]
    assert "odd.py, line 1" in descriptions["odd"]
    assert descriptions["failing"].startswith("Fails.")
    for name, message in (
        ("odd", "SyntaxError: expected ':'"),
        ("failing", "OSError: no camera .*failing.py, line 2"),
        ("empty", "it defines no 'empty'"),
    ):
        with pytest.raises(UsageError, match=message) as error:
            plugins.load("metrics", name)
        assert len(str(error.value).splitlines()) == 1
    assert plugins.load("metrics", "mean_confidence")
    assert plugins.load("metrics", "pm_k")


def test_a_name_that_is_ours_too_is_refused(folder):
    (folder / "metrics" / "pm_k.py").write_text('"""Another."""\n\n\ndef pm_k(predictions): ...\n')
    message = "two metrics are named 'pm_k': of steadyeye itself and of .*pm_k.py; rename"
    with pytest.raises(UsageError, match=message):
        plugins.load("metrics", "pm_k")
    assert "rename" in plugins.describe("metrics")["pm_k"]
    assert plugins.load("metrics", "drop")


def test_entry_points_are_found(tmp_path, monkeypatch):
    package = tmp_path / "their_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemError('imported by a listing')\n")
    (tmp_path / "their_metrics.py").write_text(
        '"""Theirs."""\n\n\ndef steadiness(predictions, k: int = 3):\n    """How steady."""\n'
    )
    info = tmp_path / "their_package-2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 2.1\n")
    (info / "entry_points.txt").write_text(
        "[steadyeye.metrics]\nsteadiness = their_metrics:steadiness\n"
        "[steadyeye.operators]\nsmear = their_package.operators:smear\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    outside_plugins._entry_points.cache_clear()
    outside_plugins._read_installed.cache_clear()
    try:
        assert (
            plugins.describe("metrics")["steadiness"] == "How steady. [package their-package 2.1]"
        )
        assert plugins.load("metrics", "steadiness").__module__ == "their_metrics"
        assert "their-package" in plugins.describe("operators")["smear"]
        with pytest.raises(UsageError, match="the operator 'smear' cannot be loaded: SystemError"):
            plugins.load("operators", "smear")
    finally:
        monkeypatch.undo()
        outside_plugins._entry_points.cache_clear()
        outside_plugins._read_installed.cache_clear()


def test_specs_name_modules_and_files():
    assert parse("my.module:thing(k=3)") == Spec("my.module:thing", {"k": 3})
    assert parse("a/b c.py:thing") == Spec("a/b c.py:thing")
    for text in ("my.module:thing(k=3)", "a/b.py:thing", "pm_k(k=10)"):
        assert parse(str(parse(text))) == parse(text)
    specs = split("accuracy, a/b.py:thing(k=[1, 2], t='a, (b'), pm_k(k=5),")
    assert [spec.name for spec in specs] == ["accuracy", "a/b.py:thing", "pm_k"]
    assert specs[1].kwargs == {"k": [1, 2], "t": "a, (b"}


def test_an_edit_is_another_key_for_that_plugin_alone(folder):
    def marks():
        forget_plugins()
        model = plugins.build("models", Spec("by_brightness"))
        sample = plugins.build("sources", Spec("grey_levels"))[0]
        own = answer_code.mark([model], plugins.modules("models", "by_brightness"), None)
        onnx = answer_code.mark([], plugins.modules("models", "onnx(path='a')"), None)
        return own, answer_code.mark([sample], (), None), onnx

    def edit(kind, old, new):
        file = folder / kind / f"{NAMES[kind]}.py"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    first = marks()
    edit("metrics", "mean()", "sum()")
    edit("models", '"""A classifier', '# a comment\n"""Some classifier')
    assert marks() == first
    edit("models", "-20", "-30")
    second = marks()
    assert [a != b for a, b in zip(first, second, strict=True)] == [True, False, False]
    edit("sources", "32, 32, 3", "34, 34, 3")
    assert [a != b for a, b in zip(second, marks(), strict=True)] == [False, True, False]


def test_one_that_fails_is_one_line(folder):
    """Whatever the code of a metric, an analysis or a probe raises."""
    for kind, old, new in (
        ("metrics", "predictions.confidence[", "predictions.certainty["),
        ("analyses", "predictions.model,", "predictions.modl,"),
        ("probes", "Probe(ProbeGrid(", "Probe(ProbGrid("),
    ):
        file = folder / kind / f"{NAMES[kind]}.py"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
        with pytest.raises(UsageError, match=rf"'{NAMES[kind]}' failed: .*{file.name}, line \d+\)"):
            testing.check_plugin(kind, NAMES[kind])


@pytest.mark.slow
def test_each_does_its_work_in_a_run(folder, tmp_path, monkeypatch):
    """A folder, a package and a file in a spec: run, report, degrade, explain, workers and Ray."""
    package = install_plugins(tmp_path / "package")
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(package), TESTS])
    env = {outside_plugins.VARIABLE: str(folder), "STEADYEYE_CACHE": str(tmp_path / "cache")}
    env |= {"PYTHONPATH": path}

    def execute(*words):
        done = steadyeye(*words, cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def count_hits(out):
        lines = (tmp_path / out / "log.jsonl").read_text().splitlines()
        (hits,) = [line["hits"] for line in map(json.loads, lines) if line["event"] == "cell"]
        return hits

    light = ("--model", "by_brightness(threshold=0.7)", "--data", "grey_levels(n=20)", "--quiet")
    listing = execute("ls", "metrics")
    assert "mean_confidence " in listing
    assert "their_mean_confidence " in listing
    execute("run", *light, "--metrics", "accuracy, mean_confidence", "--out", "a")
    # 10 to 13 of 0…19 are light by their label and dark to a threshold of 0.7
    numbers = (tmp_path / "a" / "results.csv").read_text()
    assert "accuracy,0.8" in numbers
    assert "mean_confidence" in numbers
    record = json.loads((tmp_path / "a" / "run.json").read_text())
    marks = {name for name in record["provenance"] if name.startswith("plugin ")}
    assert marks == {
        *("plugin models/by_brightness", "plugin sources/grey_levels"),
        "plugin metrics/mean_confidence",
    }
    (folder / "operators" / "further.py").write_text('"""Further."""\n')
    execute("run", *light, "--metrics", "accuracy", "--out", "again")
    assert count_hits("again") == 20, "a further plugin file empties the cache"
    title = "How confident the models are where they are wrong"
    assert title not in (tmp_path / "a" / "report.html").read_text()
    at_path = f"{folder}/analyses/confidence.py:confidence"
    for number, name in enumerate(("confidence", at_path)):
        execute("report", "a", "--analyses", name, "--out", f"{number}.html")
        assert title in (tmp_path / f"{number}.html").read_text()
    data = explain_toys.write(tmp_path / "toy")
    classes = tmp_path / "toy" / "classes.json"
    fooled = f"callable_detector(path='explain_toys:detector', classes='{classes}')"
    title = "How confident the models are in the negative"
    at_path = (
        f"{folder}/analyses/negative.py:negative(probe='{folder}/probes/negative.py:negative')"
    )
    for number, name in enumerate(("negative", at_path)):
        words = ("--analyses", name, "--limit", "3", "--quiet", "--out", f"e{number}")
        execute("explain", "--model", fooled, "--data", data, *words)
        assert title in (tmp_path / f"e{number}" / "report.html").read_text()
    checked = execute("check-plugin", "analyses", "negative", "--run", "e0")
    assert "How confident the models are in the negative" in checked
    # a name of each way in, on workers that import it anew
    mixed = ("--model", "their_by_brightness(threshold=0.7)", "--data", "grey_levels(n=20)")
    at_path = f"{folder}/operators/darken.py:darken"
    more = ("--operators", at_path, "--levels", "0,15,30", "--no-cache", "--quiet")
    for engine in ("local", "local(processes=2)", "ray(most=1)"):
        execute("degrade", *mixed, *more, "--engine", engine, "--out", engine[:9])
    tables = [
        (tmp_path / out / "results.csv").read_text() for out in ("local", "local(pro", "ray(most=")
    ]
    assert "darken" in tables[0]
    assert tables[0] == tables[1] == tables[2]


def test_six_kinds_are_tried():
    assert set(NAMES) == set(KINDS)
    assert len(FILES) == 7
