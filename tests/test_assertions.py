"""Assertions on a model in a test: the same verdict as the gate on the same run."""

import numpy as np
import pytest
from forked import run_pytest, steadyeye
from two_class_pictures import DATA, name_model, write_pictures

from steadyeye.api import evaluate, open_run
from steadyeye.assertions import assert_steady
from steadyeye.core.errors import UsageError
from steadyeye.report.gate import gate, requirements
from steadyeye.testing import example_source, tell_example_classes

NAMES = ("by_brightness", "always_white")


def see_cats(images):
    return np.tile([0.2, 0.5, 0.3], (len(images), 1))


def test_a_requirement_that_holds_passes_and_returns_the_run():
    run = assert_steady(
        tell_example_classes, example_source(), "pm_k(k=1) >= 50%", "accuracy >= .5"
    )
    assert run.pm_k(1).value == 1
    assert assert_steady(run, None, "accuracy >= 50%") is run


@pytest.mark.parametrize(
    "text", ["accuracy >= 70%", "accuracy >= 20%", "accuracy >= 5%", "accuracy <= 61%"]
)
def test_the_assertion_fails_with_the_sentence_of_the_gate(text):
    """25 % with an interval of 5.9–61.8 %: fails, is not certain, is shown, is not certain."""
    run = evaluate(see_cats, example_source())
    (verdict,) = gate([run.predictions], requirements([text]))
    if verdict.outcome == "holds":
        assert_steady(run, None, text)
        return
    with pytest.raises(AssertionError) as caught:
        assert_steady(run, None, "accuracy <= 90%", text)
    assert str(caught.value) == verdict.sentence


def test_every_failure_is_reported():
    with pytest.raises(AssertionError) as caught:
        assert_steady(see_cats, example_source(), "accuracy >= 70%", "pm_k(k=1) >= 70%")
    assert [line.split()[0] for line in str(caught.value).splitlines()] == ["accuracy", "pm_k(k=1)"]


def test_too_few_samples_show_nothing():
    run = evaluate(tell_example_classes, example_source())
    with pytest.raises(AssertionError, match="n is below the required 13"):
        assert_steady(run, None, "accuracy >= 50%", least=13)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((see_cats, None, "accuracy >= 1%"), "no data given"),
        ((see_cats, example_source()), "no requirement given"),
        ((see_cats, example_source(), "acuracy >= 1%"), "did you mean 'accuracy'"),
        ((see_cats, example_source(), "accuracy"), "it is not one comparison"),
    ],
)
def test_mistakes_are_no_assertions(arguments, why):
    with pytest.raises(UsageError, match=why):
        assert_steady(*arguments)


def test_a_finished_run_takes_neither_data_nor_options():
    run = evaluate(see_cats, example_source())
    with pytest.raises(UsageError, match="a finished run has its data and options"):
        assert_steady(run, None, "accuracy >= 1%", batch=4)


def test_every_model_of_a_run_is_judged(tmp_path, monkeypatch):
    monkeypatch.chdir(write_pictures(tmp_path))
    models = [w for name in NAMES for w in ("--model", name_model(name))]
    assert steadyeye("run", *models, "--data", DATA, "--out", "run").returncode == 0
    run = open_run(tmp_path / "run")
    with pytest.raises(AssertionError) as caught:
        assert_steady(run, None, "accuracy >= 60%")
    (line,) = str(caught.value).splitlines()
    assert line.startswith("accuracy >= 60% does not hold for always_white on images: 50.0")


@pytest.mark.slow
def test_the_fixture_is_there_in_a_session_of_its_own(tmp_path):
    """A new pytest with nothing but the installed package, on a folder of images."""
    write_pictures(tmp_path)
    (tmp_path / "test_model.py").write_text(
        f"MODEL, DATA = {name_model('by_brightness')!r}, {DATA!r}\n"
        "def test_it_holds(assert_steady):\n"
        "    run = assert_steady(MODEL, DATA, 'accuracy >= 50%')\n"
        "    again = assert_steady(MODEL, DATA, 'accuracy <= 100%', least=3)\n"
        "    assert again.folder == run.folder\n"
        "def test_it_does_not(assert_steady):\n"
        "    assert_steady(MODEL, DATA, 'accuracy <= 50%')\n"
    )
    ended = run_pytest("-p", "no:cacheprovider", "--color=no", ".", cwd=tmp_path)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "1 failed, 1 passed" in ended.stdout
    assert "accuracy <= 50% does not hold for" in ended.stdout
    assert "assertions.py" not in ended.stdout.split("short test summary")[0]
