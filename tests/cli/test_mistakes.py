"""Users' mistakes at the command line: each is one line that says what to do."""

import pytest
from forked import refusal, steadyeye, steadyeye_each
from tiny_files import FUNCTION, write_image, write_video

RUN = ("run", "--model", "mine:predict")
CLIP = (*RUN, "--data", "clip.mp4")
DEGRADE = ("degrade", "--model", "mine:predict", "--data", "photos")
SETS = (*RUN, "--data", "video(path='labelled.mp4', anchors=2, k=2, labels='two.csv')")
RUN_OF_CLIP = "a-run"
GATE = ("gate", "a", "--require")
MISTAKES = [
    (("rnu",), "Did you mean 'run'?"),
    (("run",), "give --model"),
    (RUN, "give --data"),
    (("run", "--data", "clip.mp4"), "give --model"),
    (("run", "--modle", "mine:predict"), "Possible options: --model"),
    ((*CLIP, "--metrics", "pmk"), "did you mean 'pm_k'?"),
    ((*CLIP, "--metrics", "pm_k(k=10"), "write it like name(key='text', n=10)"),
    ((*CLIP, "--metrics", "pm_k(10)"), "arguments must be named"),
    ((*CLIP, "--metrics", "accuracy"), "leave the metric out or give labels"),
    ((*CLIP, "--workers", "-1"), "or 0 for one per core"),
    ((*CLIP, "--workers", "two"), "--workers two: give a whole number"),
    ((*CLIP, "--batch", "-5"), "give 1 or more, or 0 for the default"),
    ((*CLIP, "--engine", "rya"), "did you mean 'ray'?"),
    ((*CLIP, "--engine", "local(process=2)"), "did you mean 'processes'?"),
    ((*CLIP, "--reduce", "mean"), "did you mean 'max'?"),
    ((*CLIP, "--on-error", "ignore"), "known: skip, stop"),
    ((*CLIP, "--progress", "fancy"), "known: bar, json, none"),
    ((*CLIP, "--class-map", "absent.csv"), "leave it out or give labels"),
    ((*CLIP, "--out", "clip.mp4"), "choose another --out"),
    ((*CLIP, "--out", "a", "--out", "b"), "give it once"),
    (("run", "missing.toml"), "no job at 'missing.toml'"),
    (("run", "bad.toml"), "cannot read the job 'bad.toml'"),
    (("run", "key.toml"), "did you mean 'models'?"),
    ((*RUN, "--data", "clp.mp4"), "did you mean 'clip.mp4'?"),
    ((*RUN, "--data", "vidio(path='clip.mp4')"), "did you mean 'video'?"),
    ((*RUN, "--data", "video(path=clip.mp4)"), "quote text"),
    ((*RUN, "--data", "video('clip.mp4')"), "arguments must be named"),
    ((*RUN, "--data", "video(path='clip.mp4', anchor=3)"), "did you mean 'anchors'?"),
    ((*RUN, "--data", "video(path='clip.mp4', k='ten')"), "k='ten'): give a whole number"),
    ((*RUN, "--data", "video(path='clip.mp4', k=True)"), "k=True): give a whole number"),
    (
        ("run", "--model", "callable(path='mine:predict', classes=['a'])", "--data", "clip.mp4"),
        "classes=['a']): give text in quotes",
    ),
    ((*RUN, "--data", "video(path='clip.mp4', k=-1)"), "give a number of frames, 0 or more"),
    ((*RUN, "--data", "video(path='clip.mp4', anchors=0)"), "give 1 or more anchors per video"),
    ((*RUN, "--data", "video(path='clip.mp4', labels='no.csv')"), "no label file at 'no.csv'"),
    ((*RUN, "--data", "video(path='clip.mp4', labels='wrong.csv')"), "has no column video"),
    ((*RUN, "--data", "video(path='folder.mp4')"), "folder.mp4"),
    ((*RUN, "--data", "photos/cat/1.png"), "give the folder of images, or a video"),
    ((*RUN, "--data", "names.txt"), "write it as a spec"),
    ((*RUN, "--data", "image_folder(root='phtos')"), "no file or folder at 'phtos'"),
    ((*RUN, "--data", "image_folder(path='photos')"), "known: "),
    ((*RUN, "--data", "coco(annotations='wrong.csv')"), "wrong.csv"),
    (("run", "--model", "text.onnx", "--data", "clip.mp4"), "cannot load 'text.onnx'"),
    (("run", "--model", "clip.mp4", "--data", "clip.mp4"), "known: .onnx"),
    (("run", "--model", "resnet50", "--data", "clip.mp4"), "timm:resnet50"),
    (("run", "--model", "mine:predct", "--data", "clip.mp4"), "has no 'predct'"),
    (("run", "--model", "mien:predict", "--data", "clip.mp4"), "cannot import 'mien'"),
    (
        ("run", "--model", "callable(path='mine.predict')", "--data", "clip.mp4"),
        "write package.module:name",
    ),
    (
        ("run", "--model", "torch(path='py:mine:predict')", "--data", "clip.mp4"),
        "name a function without arguments that returns a torch.nn.Module",
    ),
    ((*DEGRADE, "--operators", "jpg"), "did you mean 'jpeg'?"),
    ((*DEGRADE, "--operators", "jpeg", "--levels", "0-30"), "write first:last"),
    ((*DEGRADE, "--operators", "jpeg", "--levels", "0:99"), "levels go from 0 to 30"),
    ((*DEGRADE, "--failure-points", "half"), "write shares such as 0.9,0.5"),
    (("report",), "Missing argument"),
    (("report", "nowhere"), "give the --out folder of `steadyeye run`"),
    (("report", "a", "--out", "x.pdf"), "known: csv, html, json, md"),
    (("compare", "nowhere", "a"), "give the --out folder of `steadyeye run`"),
    (("gate", "a"), "give --require, or --against a base"),
    ((*GATE, "pm_k(k=10)"), 'write it like "pm_k(k=10) >= 0.70"'),
    ((*GATE, "acuracy >= 70%"), "did you mean 'accuracy'?"),
    (("gate", "a", "--against", "a"), "give --max-drop"),
    (("score", "absent.json", "--data", "clip.mp4"), "no file of predictions at 'absent.json'"),
    (("measure", "nowhere"), "give the --out folder of `steadyeye run`"),
    (("ls", "model"), "'models'"),
    (("classmap", "--from", "imagnet", "--to", "vid30"), "did you mean 'imagenet1k'?"),
    (("picture", "absent.png"), "cannot read the image 'absent.png'"),
    (("picture", "clip.mp4"), "cannot decode the image 'clip.mp4'"),
    (("review", "photos"), "make one with `steadyeye sample`"),
    (("sample", "clip.mp4"), "'--out'"),
    (("sample", "absent.mp4", "--out", "s"), "no file or folder at 'absent.mp4'"),
    (("mine", "nowhere", "--out", "m"), "neither a finished run nor a file of detections"),
    (
        ("explain", *CLIP[1:], "--analyses", "patch", "--out", "e"),
        "did you mean 'patch_shuffle'?",
    ),
    (("finetune", *CLIP[1:], "--out", "f"), "give the torch model it was made from"),
    (
        ("run", "clip.mp4", "--model", "mine:predict"),
        "zero byte); a job is a .toml file",
    ),
    (("run", "mine:predict", "--data", "clip.mp4"), "a job is a .toml file: give --model"),
    ((*CLIP, "photos"), "a job is a .toml file: give --model and --data"),
    (("run", "binary.toml"), "cannot read the job 'binary.toml': it is no text"),
    ((*RUN, "--data", "video(path='clip.mp4', anchors=1.5)"), "anchors=1.5): give a whole number"),
    ((*RUN, "--data", "flat"), "\"every_frame(path='flat', fps=25)\""),
    ((*RUN, "--data", "every_frame(path='flat')"), "give fps=25"),
    ((*RUN, "--data", "clip.gif"), "convert it to one of .3gp"),
    ((*RUN, "--data", "image-folder"), "did you mean 'image_folder'?"),
    ((*RUN, "--data", "s3:/bucket/photos"), "write s3://bucket/folder"),
    (
        (*RUN, "--data", "labelled.mp4"),
        "name the model's own classes with classes='…'",
    ),
    ((*CLIP, "--data", "clip.mp4"), "is given twice; give it once"),
    ((*CLIP, "--model", "mine:predict"), "is given twice; give it once"),
    ((*CLIP, "--out", "s3:/bucket/a"), "write s3://bucket/folder"),
    ((*CLIP, "--cache", "clip.mp4"), "the cache 'clip.mp4' is a file; name a folder"),
    ((*CLIP, "--metrics", "self_consistency(k=-1)"), "k counts the frames on either side"),
    ((*CLIP, "--batch", "1.5"), "--batch 1.5: give a whole number"),
    (("gate", RUN_OF_CLIP, "--min", "-1"), "--min -1: give a whole number of 0 or more"),
    (("review", "photos", "--port", "70000"), "--port 70000: give a whole number from 0 to 65,535"),
    (("watch", "clip.mp4", "--model", "x", "--block", "s"), "--block s: give a number from 1 to"),
    (("run", "--model", "efficientnet-lite0", *CLIP[3:]), "did you mean 'efficientnet_lite0'?"),
    (("run", "--model", "mine.py", *CLIP[3:]), "name a function in it, such as mine:NAME"),
    (("run", "--model", "mine.py:predict", *CLIP[3:]), "did you mean 'mine:predict'?"),
    (("run", "--model", "callable(path='mine:pedict')", *CLIP[3:]), "did you mean 'predict'?"),
    (("run", "--model", "unfinished:predict", *CLIP[3:]), "(unfinished.py, line 1); correct it"),
    (
        ("run", "--model", "raising:at_once", *CLIP[3:]),
        "RuntimeError: no weights (raising.py, line",
    ),
    (("run", "--model", "failing:predict", *CLIP[3:]), "KeyError: 'a' (failing.py, line 2)"),
    ((*DEGRADE[:-1], "clip.mp4", "--operators", "jpeg"), "give labels"),
    (("report", RUN_OF_CLIP, "--out", "photos"), "write photos.html, .md, .json or .csv"),
    (
        ("report", RUN_OF_CLIP, "--out", "clip.mp4/x.html"),
        "'clip.mp4': Not a directory; choose another",
    ),
    (("score", "scores.json", "--data", "clip.mp4"), "use `steadyeye score` with --classes"),
    (("cache",), "give one of its commands: ls, prune"),
    (("ls", "modles"), "Invalid value for 'kind': 'modles' is not one of 'models', 'sources'"),
    (("cache", "empty"), "No such command 'empty'; give one of: ls, prune"),
    (("cache", "ls", "extra"), "unexpected extra argument(s) (extra)"),
    (("cache", "prune", "--everything"), "No such option: --everything"),
    ((*CLIP, "--metrics", "self_consistency(k=0)"), "give 1 or more"),
    ((*CLIP, "--metrics", "self_consistency(k=1.5)"), "give a whole number"),
    ((*SETS, "--metrics", "pm_k(k=-1)"), "give 0 or more"),
    ((*SETS, "--metrics", "pm_k(k=3)"), "reach ±2; choose k from 0 to 2, or data with a larger k"),
    ((*SETS, "--metrics", "self_consistency(k=3)"), "self_consistency(k=3): the data"),
    ((*SETS, "--metrics", "drop(k='ten')"), "drop(k='ten'): give a whole number"),
    ((*SETS, "--metrics", "random_neighbour(k=True)"), "give a whole number"),
    ((*SETS, "--metrics", "conditional_robustness(k=2.0)"), "give a whole number"),
    ((*SETS, "--metrics", "pm_k_map(k=-2)"), "give 0 or more"),
    ((*SETS, "--metrics", "map_drop(k=0.5)"), "give a whole number"),
    ((*SETS, "--metrics", "localization(k=-1)"), "give 0 or more"),
    (("gate", RUN_OF_CLIP, "--require", "self_consistency(k=0) >= 50%"), "give 1 or more"),
    (("cache", "prune", "--all", "--cache", "clip.mp4"), "is a file; name a folder"),
    (("mine", "clip.mp4", "--out", "m"), "cannot read the file of detections 'clip.mp4'"),
    (("sample", "clip.mp4", "--out", RUN_OF_CLIP), "choose another --out"),
    ((*CLIP, "--out", RUN_OF_CLIP, "--overwrite"), "also holds 'notes.txt'"),
]
"""`a-run` is a run of the clip, with a user's notes in its folder."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a clip, photos, a model, and files of other kinds than expected."""
    root = tmp_path_factory.mktemp("mistakes")
    write_video(root / "clip.mp4")
    write_image(root / "photos" / "cat" / "1.png")
    write_image(root / "photos" / "dog" / "1.png")
    write_image(root / "flat" / "1.png")
    write_video(root / "labelled.mp4")
    (root / "folder.mp4").mkdir()
    files = {
        "mine.py": FUNCTION,
        "names.txt": "dark\nbright\n",
        "wrong.csv": "file,a\nclip.mp4,0\n",
        "bad.toml": "models = [",
        "key.toml": 'modles = ["a"]',
        "text.onnx": "no network",
        "labelled.csv": "video,first,last,labels\nlabelled.mp4,0,11,dark\n",
        "two.csv": "video,first,last,labels\nlabelled.mp4,0,5,dark\nlabelled.mp4,6,11,light\n",
        "clip.gif": "GIF89a",
        "unfinished.py": "def predict(:\n",
        "raising.py": "def at_once(images):\n    return images\nraise RuntimeError('no weights')\n",
        "failing.py": "def predict(images):\n    return {}['a']\n",
        "scores.json": '{"clip.mp4/000000": [0.1, 0.9]}',
    }
    for name, text in files.items():
        (root / name).write_text(text)
    (root / "binary.toml").write_bytes(b"\xff\xfe\x00")
    steadyeye(*CLIP, "--out", RUN_OF_CLIP, cwd=root, check=True)
    (root / RUN_OF_CLIP / "notes.txt").write_text("mine")
    return root


def list_files(folder):
    return [path for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts]


@pytest.fixture(scope="module")
def answers(folder):
    """The outcome of each mistake, and the files that it leaves."""
    before = list_files(folder)
    commands = [words for words, _ in MISTAKES]
    answers = dict(zip(commands, steadyeye_each(commands, folder), strict=True))
    return answers, set(list_files(folder)) ^ set(before)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "cure"), MISTAKES, ids=[" ".join(w) for w, _ in MISTAKES])
def test_a_mistake_is_one_line_that_names_the_cure(words, cure, answers):
    assert cure in refusal(answers[0][words])


def test_a_mistake_changes_no_file(answers):
    assert answers[1] == set()


def test_at_least_a_hundred_mistakes_are_tested():
    assert len({words for words, _ in MISTAKES}) >= 100
