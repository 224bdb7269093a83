"""The code on which a cached prediction depends: only an edit of it changes the key."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from whole_runs import davis

from steadyeye.core import plugins, source_code
from steadyeye.core.model_stages import AtInput
from steadyeye.core.source_code import ROOT, closure
from steadyeye.core.spec import parse
from steadyeye.core.types import Sample
from steadyeye.degradation.sweep import Degrading, Sweep
from steadyeye.runner.cache import answer_code
from steadyeye.runner.sweep import operators

__all__ = ["davis"]

ONNX = [("steadyeye.models.backends.onnx", "")]


@pytest.fixture
def copy(monkeypatch, tmp_path):
    """A copy of the package that is read in its place; gives `edit(file, old, new)`."""
    root = tmp_path / "steadyeye"
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns("__pycache__", "*.js", "*.css"))
    monkeypatch.setattr(source_code, "ROOT", root)
    source_code.file_of.cache_clear()

    def edit(file, old, new):
        text = (root / file).read_text()
        assert old in text
        (root / file).write_text(text.replace(old, new, 1))

    yield edit
    source_code.file_of.cache_clear()


def digest(roots):
    return closure(roots, leave=answer_code.NO_ANSWER).digest


def image_code(spec):
    """The symbols behind the images of a source."""
    return answer_code.parts([plugins.build("sources", parse(spec))[0]])[0]


@pytest.mark.slow
def test_an_edit_of_what_a_model_runs_is_another_key(copy):
    digests = [digest(ONNX)]
    for edit in (
        ("models/preprocessing/resample.py", "BITS = ", "BITS = 1 + "),
        ("models/preprocessing/recipe.py", "return", "return None or"),
        ("models/runtimes/onnx_session.py", "inter_op_num_threads = 1", "inter_op_num_threads = 2"),
        ("models/backends/onnx.py", "return", "return None or"),
    ):
        copy(*edit)
        digests.append(digest(ONNX))
    assert len(set(digests)) == 5


def test_an_edit_of_anything_else_keeps_the_key(copy):
    before = digest(ONNX)
    copy("models/preprocessing/resample.py", "BITS = ", "# a comment\n\nBITS = ")
    copy("models/preprocessing/resample.py", '"""', '"""Another docstring. ')
    copy("metrics/pm_k.py", "return", "return None or")
    copy("report/render/document.py", "return", "return None or")
    copy("models/backends/timm.py", "return", "return None or")
    copy("data/sources/video.py", "return", "return None or")
    copy("degradation/operators/jpeg.py", "return", "return None or")
    copy("core/types.py", "class Result", "class Further:\n    more = 1\n\n\nclass Result")
    copy("core/errors.py", "MOST = 20", "MOST = 30")
    assert digest(ONNX) == before


def test_a_new_plugin_file_changes_nothing(copy):
    before = digest(ONNX)
    for folder in ("models/backends", "data/sources", "degradation/operators"):
        (source_code.ROOT / folder / "further.py").write_text("def further():\n    return 1\n")
    assert digest(ONNX) == before


def test_the_decoder_of_a_source_counts_and_how_it_lists_its_files_does_not(copy, davis):
    symbols = image_code(davis)
    before = digest(symbols)
    copy("data/sources/frames.py", "return", "return None or")
    assert digest(symbols) == before
    copy(
        "data/images/image_file.py", "simplejpeg.decode_jpeg(data", "simplejpeg.decode_jpeg(data[:]"
    )
    assert digest(symbols) != before


def sweep(names):
    """A sweep of one grey image over operators."""

    class OneImage:
        name, classes, columns, notes, fingerprint = "one", None, ("truth",), (), "one"
        ids, truths = ("a",), ((0,),)

        def __len__(self):
            return 1

        def __getitem__(self, index):
            return Sample("a", _grey, (0,), key=lambda: "a")

    how = Degrading(operators(names, gradients=False), (0, 1))
    return Sweep(OneImage(), AtInput(np.asarray, None, None), how, how.grid([0]), [[0]])


def _grey():
    return np.full((8, 8, 3), 100, dtype=np.uint8)


def test_an_operator_counts_for_its_own_images_alone(copy):
    grey_sweep = sweep("jpeg, posterize, gaussian_noise, shot_noise")
    shapes = {answer_code.image_shape(grey_sweep[row]) for row in range(len(grey_sweep))}
    assert len(shapes) == len(grey_sweep) == 5
    symbols = [answer_code.parts([grey_sweep[row]])[0] for row in range(len(grey_sweep))]
    before = [digest(symbol) for symbol in symbols]
    copy("degradation/operators/jpeg.py", "return", "return None or")
    after = [digest(symbol) for symbol in symbols]
    assert [x != y for x, y in zip(before, after, strict=True)] == [False, True, *3 * [False]]


def test_versions_are_of_the_packages_that_the_code_imports():
    packages = closure(ONNX, plugins.EXTRAS, leave=answer_code.NO_ANSWER).packages
    assert {"numpy", "onnxruntime"} <= packages
    assert not {"torch", "transformers", "av", "ray"} & packages
    assert "onnxruntime" in answer_code.versions(packages)


def test_the_code_mark_is_cached_until_a_file_changes(tmp_path, monkeypatch):
    first = answer_code.mark([], ["steadyeye.models.backends.onnx"], tmp_path)
    monkeypatch.setattr(answer_code, "closure", lambda *_, **__: pytest.fail("read again"))
    assert answer_code.mark([], ["steadyeye.models.backends.onnx"], tmp_path) == first
    (tmp_path / answer_code.FILE).write_text("no JSON")
    with pytest.raises(pytest.fail.Exception):
        answer_code.mark([], ["steadyeye.models.backends.onnx"], tmp_path)


def test_one_thread_reads_code_at_a_time(monkeypatch):
    inside, most = [], []

    def slow(*arguments, **options):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.01)
        code = closure(*arguments, **options)
        inside.pop()
        return code

    monkeypatch.setattr(answer_code, "closure", slow)
    source_code._parse.cache_clear()
    with ThreadPoolExecutor(8) as threads:
        mark_arguments = ([], ["steadyeye.models.backends.onnx"], None)
        marks = set(threads.map(lambda _: answer_code.mark(*mark_arguments), range(8)))
    assert len(marks) == 1
    assert max(most) == 1
