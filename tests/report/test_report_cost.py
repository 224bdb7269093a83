"""Costs of the report of a small run: imported packages, and their replacements."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import light_toys
import numpy as np
import pyarrow as pa
import pytest
from light_toys import dark, light, write_clip
from scipy.optimize import brentq
from scipy.stats import CensoredData, binomtest, ecdf
from typer.main import get_command

import steadyeye as se
from steadyeye.cli import COMMANDS
from steadyeye.cli.options import ParsingError, app, keep_text
from steadyeye.core.errors import UsageError
from steadyeye.core.stats import proportions
from steadyeye.core.stats.proportions import mcnemar, tango
from steadyeye.metrics.sequences.answer_runs import median
from steadyeye.predictions.schema import list_values, numbers
from steadyeye.report.render.vega import FILE

HEAVY = {
    *(
        "accelerate",
        "av",
        "cv2",
        "llvmlite",
        "matplotlib",
        "numba",
        "onnxruntime",
        "pandas",
        "pydantic",
        "scenedetect",
        "sklearn",
        "sqlalchemy",
    ),
    # scipy.special brings the other three
    *("scipy.special", "numpy.f2py", "numpy.testing", "unittest"),
    *("scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.stats"),
    *("pyarrow.compute", "sqlite3", "torch", "torchvision", "vl_convert", "yaml"),
}
"""What no report of pm-sets of a classifier needs, each 0.02 s of a processor or more."""


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """Two models on the pm-sets of a short clip, measured: their difference has an interval."""
    root = tmp_path_factory.mktemp("small")
    data = write_clip(root)
    for model in (dark, light):
        se.evaluate(model, data, out=root / model.__name__).measure()
    return [root / model.__name__ for model in (dark, light)]


@pytest.mark.slow
def test_a_gate_a_report_and_a_run_import_no_more_than_they_need(two_runs, tmp_path):
    first, second = map(str, two_runs)
    gate = ["gate", first, "--require", "pm_k(k=1) >= 1%", "--against", second, "--max-drop", "99%"]
    commands = [gate, ["report", first, second, "--out", "r.html"]]
    code = (
        "import json, sys\n"
        "from steadyeye.cli import main\n"
        "def call(words):\n"
        "    sys.argv = ['steadyeye', *words]\n"
        "    try:\n        main()\n"
        "    except SystemExit as end:\n        return end.code\n"
        f"for words in {commands!r}:\n    call(words)\n"
        "imported = sorted(sys.modules)\n"
        f"assert call(['sample', 'clip.mp4', '--out', {first!r}]) == 2, 'it holds a run'\n"
        "assert 'numba' not in sys.modules\n"
        f"sys.path.append({str(Path(light_toys.__file__).parent)!r})\n"
        "import light_toys, steadyeye as se\n"
        "from pathlib import Path\n"
        "data = light_toys.write_clip(Path())\n"
        "se.evaluate(light_toys.dark, data, out='again').measure()\n"
        "assert 'pandas' not in sys.modules\n"
        "print(json.dumps(imported))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    imported = set(json.loads(done.stdout.splitlines()[-1]))
    assert {"numpy", "scipy.special._ufuncs", "steadyeye.report.analyses.comparison"} <= imported
    # a checkout that was never built bundles the script of its charts itself
    assert not (HEAVY - ({"vl_convert"} if not FILE.is_file() else set())) & imported
    assert {"steadyeye.report.gate", "steadyeye.report.analyses.what_changed"} <= imported
    assert "<h2>" in (tmp_path / "r.html").read_text()


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
def test_python_imports_the_leaderboard_when_it_is_called(two_runs):
    code = (
        "import sys\n"
        "import steadyeye as se\n"
        "def count_modules():\n"
        "    return sum('.leaderboard_' in name for name in sys.modules)\n"
        f"runs = [se.open_run(folder) for folder in {list(map(str, two_runs))!r}]\n"
        "se.compare(*runs, metrics='accuracy')\n"
        "before = count_modules()\n"
        "print(before, len(se.leaderboard(*runs, metrics='accuracy').rows), count_modules() > 0)"
    )
    assert run_python(code) == ["0", "2", "True"]


def test_functions_are_those_of_scipy_special_which_is_whole_afterwards():
    code = (
        "import sys\n"
        "from steadyeye.core import special\n"
        "assert 'scipy.special' not in sys.modules\n"
        "import scipy.special, scipy.stats\n"
        "for name in special.NAMES:\n"
        "    assert getattr(scipy.special, name) is getattr(special, name), name\n"
        "print(scipy.special.binom(5, 2), scipy.stats.norm.cdf(0.0))"
    )
    assert run_python(code) == ["10.0", "0.5"]


def test_another_thread_gets_scipy_special_whole_meanwhile():
    code = (
        "import sys, threading\n"
        "from importlib.abc import MetaPathFinder\n"
        "values = []\n"
        "def use():\n"
        "    import scipy.special\n"
        "    values.append(getattr(scipy.special, 'binom', None) is not None)\n"
        "class Meanwhile(MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'scipy.special._ufuncs' and not threads:\n"
        "            threads.append(threading.Thread(target=use))\n"
        "            threads[0].start()\n"
        "            threads[0].join(0.3)  # it has to wait for this import\n"
        "threads = []\n"
        "sys.meta_path.insert(0, Meanwhile())\n"
        "from steadyeye.core import special\n"
        "threads[0].join()\n"
        "import scipy.special\n"
        "print(values[0], special.ndtri is scipy.special.ndtri)"
    )
    assert run_python(code) == ["True", "True"]


@pytest.mark.parametrize("other", ["_not_there", "_comb"])
def test_all_of_scipy_special_where_its_compiled_module_is_another(other):
    code = (
        "import sys\n"
        "from steadyeye.core import special\n"
        f"found = special.import_functions({other!r})\n"
        "print(found.__name__, found.ndtri is special.ndtri, 'numpy.f2py' in sys.modules)"
    )
    assert run_python(code) == ["scipy.special", "True", "True"]


@pytest.mark.parametrize("words", [["report", "a", "b"], ["run", "--data", "a", "--data", "b"]])
def test_text_on_the_command_line_is_as_typer_takes_it(words):
    def parsed(group):
        command = group.commands[words[0]]
        return command.make_context(words[0], words[1:], resilient_parsing=False).params

    for name in COMMANDS:
        import_module(f"steadyeye.cli.{name}")
    usual, plain = get_command(app), get_command(app)
    for subcommand in plain.commands.values():
        keep_text(subcommand)
    assert parsed(plain) == parsed(usual)
    with pytest.raises(UsageError, match="--batch many: give a whole number"):
        plain.commands["run"].make_context("run", ["--batch", "many"])
    with pytest.raises(ParsingError) as refused:
        plain.commands["report"].make_context("report", [])
    assert "Missing argument" in refused.value.format_message()


def test_numbers_of_arrow_without_pandas():
    rng = np.random.default_rng(0)
    for n in (0, 1, 7, 8, 9, 100):
        flags = rng.random(n) < 0.5
        column = pa.array(flags.tolist(), pa.bool_())
        for start in (0, 1, 3, 9):
            assert np.array_equal(numbers(column.slice(start)), flags[start:])
        for kind in (pa.int32(), pa.int64(), pa.float32(), pa.float64()):
            part = pa.array(rng.integers(0, 9, n), kind)
            both = pa.chunked_array([part, part])
            assert numbers(both).dtype == both.to_numpy().dtype
            assert np.array_equal(numbers(both), both.to_numpy())
            assert np.array_equal(numbers(part.slice(3)), part.slice(3).to_numpy())
    assert np.isnan(numbers(pa.chunked_array([[1.0, None]]))[1])


def test_values_of_lists_without_the_functions_of_arrow():
    lists = pa.array([[1, 2], [], [3], [4, 5, 6]], pa.list_(pa.int32()))
    for part in (lists, lists.slice(1), lists.slice(2, 1), lists.slice(4), lists[:0]):
        assert list_values(part).tolist() == part.flatten().to_pylist()
    missing = pa.array([[1], None, [2]], pa.list_(pa.int32()))
    assert list_values(missing).tolist() == [1, 2]


def test_mcnemar_is_the_binomial_test():
    for n in (*range(1, 40), 151, 400):
        for only_one in range(0, n + 1, max(n // 30, 1)):
            expected = binomtest(only_one, n).pvalue
            assert mcnemar(only_one, n - only_one) == pytest.approx(expected, rel=1e-11)
    assert mcnemar(0, 0) == 1
    assert mcnemar(3, 20_000) == 0


def test_tangos_ends_equal_those_of_a_fine_search(monkeypatch):
    cases = [(a, b, n) for n in (1, 2, 5, 13, 40) for a in range(n + 1) for b in range(n + 1 - a)]
    rng = np.random.default_rng(0)
    cases += [(*map(int, rng.integers(0, n // 2, 2)), int(n)) for n in rng.integers(50, 9000, 200)]
    ends = [tango(*case) for case in cases]
    monkeypatch.setattr(proportions, "_root", lambda *arguments: brentq(*arguments, xtol=1e-15))
    assert np.allclose(ends, [tango(*case) for case in cases], rtol=0, atol=2e-12)


def test_the_median_of_runs_is_that_of_kaplan_and_meier():
    rng = np.random.default_rng(0)
    for _ in range(500):
        n = int(rng.integers(1, 40))
        lengths = 0.04 * rng.integers(1, int(rng.integers(2, 30)), n)
        ended = rng.random(n) < rng.random()
        if not ended.any():
            assert median(lengths, ended) == np.inf
            continue
        left = ecdf(CensoredData(uncensored=lengths[ended], right=lengths[~ended])).sf
        reached = left.quantiles[left.probabilities <= 0.5]
        assert median(lengths, ended) == (reached[0] if len(reached) else np.inf)
