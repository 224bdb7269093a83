"""Short forms of models and data, the default folder, and options given twice."""

import json
import shutil

import numpy as np
import pytest
import torch
from forked import steadyeye
from tiny_files import FUNCTION, write_image, write_video
from toy_networks import net

from steadyeye.api import evaluate
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.core.storage.run_lock import hold_run
from steadyeye.metrics.confidence_jump import confidence_jump
from steadyeye.predictions.read import cells, read
from steadyeye.runner.job import Job
from steadyeye.runner.short_forms import default_folder, expand_data, expand_model


@pytest.fixture
def work_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def export(path, module):
    torch.onnx.export(module, torch.zeros(1, 3, 32, 32), str(path), verbose=False)
    return path


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("timm:resnet50.a1_in1k", "timm(name='resnet50.a1_in1k')"),
        ("torchvision:resnet50", "torchvision(name='resnet50')"),
        ("hf:google/vit", "hf(name='google/vit')"),
        ("efficientnet_lite0", "efficientnet_lite0"),
        ("torch(path='a.pt', classes='b')", "torch(path='a.pt', classes='b')"),
        ("toy_networks:brightness", "callable(path='toy_networks:brightness')"),
        ("py:toy_networks:brightness", "callable(path='toy_networks:brightness')"),
    ],
)
def test_short_forms_of_models_are_expanded(text, spec, work_folder):
    assert expand_model(text) == spec


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("saved/saved_model.pb", r"SavedModel of TensorFlow; .*tf2onnx.convert --saved-model "),
        ("saved/weights.bin", "holds neither model.json"),
        ("saved.h5", "is no known kind of model file; load it in Keras and save it as .keras; kno"),
    ],
)
def test_models_of_tensorflow_are_refused_with_the_way_to_convert_them(name, words, work_folder):
    path = work_folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"model")
    with pytest.raises(UsageError, match=words):
        expand_model(name.partition("/")[0])


def test_a_function_that_builds_a_network_takes_the_classes_next_to_it(work_folder):
    (work_folder / "builder.py").write_text("from toy_networks import net as build")
    with pytest.raises(UsageError, match=r"put a classes\.txt next to it") as refusal:
        expand_model("builder:build")
    assert "the names of the 10 classes" in str(refusal.value)
    (work_folder / "classes.txt").write_text("\n".join("abc"))
    with pytest.raises(UsageError, match=r"put a classes\.txt next to it"):
        expand_model("builder:build")  # three names are not the ten that it answers in
    (work_folder / "classes.txt").write_text("\n".join("abcdefghij"))
    spec = parse(expand_model("builder:build"))
    assert spec.name == "torch"
    assert spec.kwargs == {"path": "py:builder:build", "classes": str(work_folder / "classes.txt")}


def test_a_module_of_1000_outputs_is_taken_for_imagenet_and_the_run_says_so(work_folder):
    (work_folder / "thousand.py").write_text(
        "import torch\ndef build():\n"
        "    return torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),"
        " torch.nn.Linear(3, 1000))"
    )
    torch.manual_seed(0)
    layers = torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 1000)
    wide = torch.nn.Sequential(*layers).eval()
    torch.jit.trace(wide, torch.zeros(1, 3, 224, 224)).save("wide.pt")
    write_video(work_folder / "clip.mp4")
    for text, full in (
        ("thousand:build", "torch(path='py:thousand:build')"),
        ("wide.pt", "torch(path='wide.pt')"),
    ):
        assert expand_model(text) == full
        spec = full.replace(")", ", runtime='torch')")
        run = evaluate(spec, "every_frame(path='clip.mp4')", out=str(work_folder / text[:4]))
        note = "its 1,000 outputs are taken for the classes of ImageNet-1k"
        assert note in " ".join(run.predictions.notes)
    torch.jit.trace(net(), torch.zeros(1, 3, 32, 32)).save("ten.pt")
    spec = parse("torch(path='ten.pt', recipe={'size': [32, 32]})")
    with pytest.raises(UsageError, match=r"the classes of 'ten\.pt' are not known; write them"):
        plugins.build("models", spec)


@pytest.mark.slow
def test_short_forms_of_onnx_files_are_expanded(work_folder):
    pytest.importorskip("onnx")
    export(work_folder / "ten.onnx", net())
    with pytest.raises(UsageError, match="the names of the 10 classes"):
        expand_model("ten.onnx")
    (work_folder / "ten.txt").write_text("\n".join("abcdefghij"))
    assert expand_model("ten.onnx") == "onnx(path='ten.onnx', classes='ten.txt')"
    wide = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 1000))
    export(work_folder / "wide.onnx", wide)
    assert expand_model("wide.onnx") == "onnx(path='wide.onnx')"
    write_video(work_folder / "clip.mp4")
    data, out = "every_frame(path='clip.mp4')", work_folder / "run"
    run = evaluate("onnx(path='wide.onnx')", data, out=str(out))
    note = "wide: its 1,000 outputs are taken for the classes of ImageNet-1k"
    assert note in " ".join(run.predictions.notes)
    marks = {
        plugins.build("models", parse(spec)).fingerprint
        for spec in ("onnx(path='wide.onnx')", "onnx(path='wide.onnx', classes='imagenet1k')")
    }
    assert len(marks) == 1, "a note makes no other model"
    run.report(str(work_folder / "report.md"))
    assert note in (work_folder / "report.md").read_text()
    (work_folder / "wide.txt").write_text("\n".join(map(str, range(1000))))
    run = evaluate(expand_model("wide.onnx"), data, out=str(work_folder / "other"))
    assert note not in " ".join(run.predictions.notes)
    (work_folder / "broken.onnx").write_bytes(b"no network")
    with pytest.raises(UsageError, match=r"cannot load 'broken\.onnx'"):
        expand_model("broken.onnx")


@pytest.mark.parametrize(
    ("file", "decoder"), [("yolox_nano", "yolox"), ("FastestDet", "fastestdet")]
)
def test_released_detectors_are_known_by_their_outputs(file, decoder, test_data):
    path = str(test_data / "models" / f"{file}.onnx")
    assert expand_model(path) == f"onnx_detector(path={path!r}, decoder='{decoder}')"


def test_python_takes_specs_in_full_and_names_them(work_folder):
    write_video(work_folder / "clip.mp4")
    with pytest.raises(
        UsageError, match=r"'clip\.mp4' is short for every_frame\(path='clip\.mp4'\)"
    ):
        evaluate(np.zeros_like, "clip.mp4")
    with pytest.raises(UsageError, match=r"'timm:x' is short for timm\(name='x'\)"):
        evaluate("timm:x", "every_frame(path='clip.mp4')")


def test_short_forms_of_data_are_expanded(work_folder):
    write_video(work_folder / "clip.mp4")
    assert expand_data("clip.mp4") == "every_frame(path='clip.mp4')"
    (work_folder / "clip.json").write_text("{}")
    assert expand_data("clip.mp4") == "video(path='clip.mp4', labels='clip.json')"
    write_image(work_folder / "photos" / "cat" / "1.png")
    assert expand_data("photos/") == "image_folder(root='photos')"
    write_image(work_folder / "frames" / "0001.png")
    with pytest.raises(UsageError, match=r"every_frame\(path='frames', fps=25\)"):
        expand_data("frames")
    steadyeye("sample", "clip.mp4", "--k", "1", "--out", "set", cwd=work_folder, check=True)
    assert expand_data("set/") == "reviewed(root='set')"
    (work_folder / "data.yaml").write_text("names: [a]")
    assert expand_data("data.yaml") == "yolo(data='data.yaml')"
    assert expand_data("every_frame(path='clip.mp4')") == "every_frame(path='clip.mp4')"


def test_annotations_take_the_images_next_to_them(work_folder):
    (work_folder / "boxes.json").write_text('{"images": [], "annotations": [], "categories": []}')
    with pytest.raises(UsageError, match=r"no images next to .* leave out images to score"):
        expand_data("boxes.json")
    write_image(work_folder / "images" / "1.png")
    assert expand_data("boxes.json") == "coco(annotations='boxes.json', images='images')"
    (work_folder / "other.json").write_text("[1]")
    with pytest.raises(UsageError, match="not a COCO annotation file"):
        expand_data("other.json")


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("clp.mp4", "did you mean 'clip.mp4'"),
        ("photo.png", "give the folder of images"),
        ("empty", "holds no videos and no images"),
        ("vido", "did you mean 'video'"),
        ("nowhere/", "check the path"),
    ],
)
def test_data_that_is_not_there_names_the_cure(text, cure, work_folder):
    write_video(work_folder / "clip.mp4")
    write_image(work_folder / "photo.png")
    (work_folder / "empty").mkdir()
    with pytest.raises(UsageError, match=cure):
        expand_data(text)


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("resnet50", "timm:resnet50"),
        ("efficientnet_lite", "did you mean 'efficientnet_lite"),
        ("no_module:predict", "cannot import 'no_module'"),
        ("toy_networks:brightnes", "has no 'brightnes'"),
        ("modle.onnx", "did you mean 'model.onnx'"),
        ("empty/", "neither model.json"),
    ],
)
def test_an_absent_model_is_refused_with_the_cure(text, cure, work_folder):
    (work_folder / "model.onnx").touch()
    (work_folder / "empty").mkdir()
    with pytest.raises(UsageError, match=cure):
        expand_model(text)


def test_the_default_folder_is_that_of_the_same_job_or_the_next(work_folder):
    job = Job(models=("timm(name='resnet50')",), data=("video(path='clips/street.mp4')",))
    first = work_folder / default_folder(job)
    assert first == work_folder / "runs" / "resnet50-street-1"
    first.mkdir(parents=True)
    assert default_folder(job) == "runs/resnet50-street-2"  # whatever lies there is no such run
    (first / "run.json").write_text(json.dumps({"job": job.record()}))
    assert default_folder(job) == "runs/resnet50-street-1"
    other = Job(models=job.models, data=job.data, metrics="accuracy")
    assert default_folder(other) == "runs/resnet50-street-2"


@pytest.mark.slow
def test_from_nothing_to_a_report_in_short_forms(work_folder):
    write_video(work_folder / "clip.mp4")
    (work_folder / "mine.py").write_text(FUNCTION)
    words = ("run", "--model", "mine:predict", "--data", "clip.mp4", "--quiet")
    done = steadyeye(*words, cwd=work_folder)
    assert done.returncode == 0, done.stderr
    assert "model mine:predict: callable(path='mine:predict')" in done.stdout
    assert "data clip.mp4: every_frame(path='clip.mp4')" in done.stdout
    assert (work_folder / "runs" / "predict-clip-1" / "report.html").is_file()
    # the same command is the same run; another job is another folder
    assert steadyeye(*words, cwd=work_folder).returncode == 0
    assert steadyeye(*words, "--metrics", "flip_rate", cwd=work_folder).returncode == 0
    assert sorted(p.name for p in (work_folder / "runs").iterdir()) == [
        "predict-clip-1",
        "predict-clip-2",
    ]


def test_a_command_that_fails_before_its_first_shard_claims_no_folder(work_folder):
    write_video(work_folder / "clip.mp4")
    (work_folder / "mine.py").write_text("def predict(images):\n    raise ValueError('broken')\n")
    done = steadyeye("run", "--model", "mine:predict", "--data", "clip.mp4", cwd=work_folder)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not (work_folder / "runs").exists()


@pytest.mark.slow
def test_overwrite_deletes_a_run_and_nothing_else(work_folder):
    write_video(work_folder / "clip.mp4")
    (work_folder / "mine.py").write_text(FUNCTION)
    words = ("run", "--model", "mine:predict", "--data", "clip.mp4", "--quiet", "--out", "a")
    assert steadyeye(*words, cwd=work_folder).returncode == 0
    other = (*words, "--metrics", "flip_rate", "--on-error", "skip")
    assert "holds another job" in steadyeye(*other, cwd=work_folder).stderr
    assert steadyeye(*other, "--overwrite", cwd=work_folder).returncode == 0
    with hold_run(work_folder / "a"):
        busy = steadyeye(*other, "--overwrite", cwd=work_folder)
    assert "another process is writing" in busy.stderr
    assert (work_folder / "a" / "report.html").is_file()
    (work_folder / "b").mkdir()
    (work_folder / "b" / "notes.txt").write_text("mine")
    refusal = steadyeye(*words[:-1], "b", "--overwrite", cwd=work_folder)
    assert "holds no run, so it is not deleted" in refusal.stderr
    assert (work_folder / "b" / "notes.txt").is_file()


@pytest.mark.slow
def test_no_command_writes_into_a_folder_of_another(work_folder):
    """Also not a watch into a run, or a run into a set that people review."""
    write_video(work_folder / "clip.mp4")
    (work_folder / "mine.py").write_text(FUNCTION)
    job = ("--model", "mine:predict", "--data", "clip.mp4", "--quiet")
    commands = {
        "run": ("run", *job),
        "watch": ("watch", "clip.mp4", "--model", "mine:predict", "--no-page"),
        "sample": ("sample", "clip.mp4", "--k", "1"),
    }
    for name, words in commands.items():
        steadyeye(*words, "--out", name, cwd=work_folder, check=True)
    (work_folder / "begun").mkdir()
    shutil.copy(work_folder / "run" / "run.json", work_folder / "begun")
    (work_folder / "finetune").mkdir()
    (work_folder / "finetune" / "run.json").write_text(json.dumps({"kind": "finetune"}))
    before = {file: file.stat().st_mtime_ns for file in work_folder.rglob("*.json")}
    for folder, of in [*zip(commands, commands, strict=True), ("begun", "run"), ("finetune",) * 2]:
        for other in commands.keys() - {of}:
            done = steadyeye(*commands[other], "--out", folder, cwd=work_folder)
            assert done.stderr.splitlines()[-1] == (
                f"steadyeye: '{folder}' holds the results of steadyeye {of}, not of {other}; "
                "choose another --out"
            )
    assert {file: file.stat().st_mtime_ns for file in work_folder.rglob("*.json")} == before


def test_an_option_given_twice_adds_up_or_is_refused(work_folder):
    write_video(work_folder / "clip.mp4")
    (work_folder / "mine.py").write_text(FUNCTION)
    words = ("run", "--model", "mine:predict", "--data", "clip.mp4", "--quiet", "--out", "a")
    assert "--out is given 2 times" in steadyeye(*words, "--out=b", cwd=work_folder).stderr
    both = ("--metrics", "flip_rate", "--metrics", "confidence_jump")
    printed = steadyeye(*words, *both, cwd=work_folder).stdout
    assert "flip_rate" in printed
    assert "confidence_jump" in printed


class Softmaxed(torch.nn.Module):
    """Two probabilities by the mean of the prepared image."""

    def forward(self, images):
        mean = images.mean((1, 2, 3))
        return torch.stack([mean, -mean], dim=1).softmax(1)


@pytest.mark.filterwarnings("ignore")
def test_a_model_file_that_ends_in_softmax_is_taken_so_and_that_is_printed(work_folder):
    export_as = {"input_names": ["images"], "dynamo": False}
    torch.onnx.export(Softmaxed(), (torch.zeros(1, 3, 32, 32),), "m.onnx", **export_as)
    (work_folder / "classes.txt").write_text("bright\ndark")
    write_video(work_folder / "clip.mp4")
    words = ("--model", "m.onnx", "--data", "clip.mp4")
    done = steadyeye("run", *words, "--out", "a", "--no-cache", cwd=work_folder, check=True)
    assert (
        "m: images are resized (the short side to 36, bicubic) and cropped to 32 x 32, minus mean "
        "123.675, 116.28, 103.53, divided by std 58.395, 57.12, 57.375; the output is taken as "
        "probabilities (no softmax is applied); if that is wrong, give recipe={…} in its spec"
    ) in done.stdout.splitlines()
    # DEFINITIONS: the mean |Δ probability of the frame's own top-1| of consecutive frames
    model = plugins.build("models", parse(expand_model("m.onnx")))
    source = plugins.build("sources", parse(expand_data("clip.mp4")))
    frames = [model.stages().prepare(source[i].image()) for i in range(len(source))]
    sure = Softmaxed()(torch.from_numpy(np.stack(frames))).max(1).values.numpy()
    (table,) = [read(*cell) for cell in cells(work_folder / "a")]
    jump = confidence_jump(table)
    assert jump.value == pytest.approx(np.abs(np.diff(sure)).mean(), abs=1e-4)
    assert jump.value > 0.02, "through a second softmax it would be less than half of that"


def test_a_model_of_one_output_is_refused_in_one_line(work_folder):
    pytest.importorskip("onnx")
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 1))
    torch.onnx.export(network, (torch.zeros(1, 3, 32, 32),), "one.onnx", dynamo=False)
    with pytest.raises(UsageError, match="gives one number per image") as refusal:
        expand_model("one.onnx")
    assert "\n" not in str(refusal.value)


def test_a_data_yaml_of_the_current_folder_is_named_after_the_folder(work_folder):
    write_image(work_folder / "images" / "val" / "1.png")
    labels = work_folder / "labels" / "val" / "1.txt"
    labels.parent.mkdir(parents=True)
    labels.write_text("0 0.5 0.5 0.2 0.2\n")
    (work_folder / "data.yaml").write_text("val: images/val\nnames: [cat]\n")
    source = plugins.build("sources", parse(expand_data("data.yaml")))
    assert source.name == f"{work_folder.name}-val"
    assert len(source) == 1
