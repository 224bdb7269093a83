"""Short forms of models and data, `timm:resnet50` or `clip.mp4`, written out as full specs."""

import ast
import inspect
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError, join_errors, unknown
from steadyeye.core.format import number_of
from steadyeye.core.imports import attribute, user_module
from steadyeye.core.python_syntax import parse_module
from steadyeye.core.spec import Spec, parse
from steadyeye.core.storage.files import place
from steadyeye.data.classes.class_lists import read
from steadyeye.data.images.image_file import SUFFIXES
from steadyeye.data.video.paths import VIDEOS
from steadyeye.models.runtimes.unread_files import describe_unread
from steadyeye.runner.job import Job

if TYPE_CHECKING:
    from steadyeye.models.runtimes.network import Network

LIBRARIES = ("timm", "torchvision", "hf")
"""Models whose one necessary argument is a name: `timm:resnet50`."""
TORCH_FILES = (".pt", ".pth", ".pt2", ".ts")
DEPLOYED_FILES = {".xml": "openvino", ".tflite": "litert"}
"""Suffix of a deployed model → its backend."""
CLASS_FILES = ("{stem}.txt", "{stem}.names", "classes.txt", "labels.txt", "names.txt")
"""Where the classes of a model file are looked for, beside it."""
IMAGENET = 1_000
ANNOTATION_KEYS = {"images", "annotations", "categories"}

NAMING = ("name", "path", "root", "annotations", "data", "folder")
"""Arguments after which a run is named, the first that a spec has."""

_SPEC = re.compile(r"\s*[A-Za-z_]\w*\s*(\(.*\))?\s*", re.DOTALL)
_DASHED = re.compile(r"[\w.-]+")
_PREFIXED = re.compile(r"([a-z_]\w*):(.+)", re.DOTALL)
_FILE_OF_PLUGIN = re.compile(r"[^()]+\.py:[A-Za-z_]\w*\s*(\(.*\))?", re.DOTALL)
_PYTHON = re.compile(r"(py:)?[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def expand_model(text: str) -> str:
    """The full spec of a model; one that is a spec already is returned as it is.

    `timm:NAME`, `torchvision:NAME` and `hf:NAME`; an ONNX, torch or Keras file; a folder that
    `finetune` wrote or that transformers saved; `package.module:name`, a function on images or one
    that builds a torch module. Raises `UsageError` for anything else, with what is near.
    """
    if _FILE_OF_PLUGIN.fullmatch(text.strip()):
        _refuse_function_on_images(text.strip())
        return text
    prefixed = _PREFIXED.fullmatch(text.strip())
    if prefixed and prefixed[1] in LIBRARIES:
        return str(Spec(prefixed[1], {"name": prefixed[2]}))
    if _PYTHON.fullmatch(text.strip()) and not Path(text).exists():
        return _python_model(text.strip())
    if _is_path(text, (".onnx", ".keras", *DEPLOYED_FILES, *TORCH_FILES)):
        return _model_of_path(_existing(text))
    if _SPEC.fullmatch(text) or _DASHED.fullmatch(text):
        _check_name("models", text)
    return text


def expand_data(text: str) -> str:
    """The full spec of data; one that is a spec already is returned as it is.

    A video, a folder of videos (with labels where a sidecar of the same name lies beside it), a
    folder with a folder of images a class, a set of `sample`, an Ultralytics data.yaml, or COCO's
    annotations. Raises `UsageError` for anything else, with what is near.
    """
    if _FILE_OF_PLUGIN.fullmatch(text.strip()):
        return text
    if _is_path(text, (*VIDEOS, *SUFFIXES, ".yaml", ".yml", ".json")):
        return _data_of_path(_existing(text))
    if _SPEC.fullmatch(text) or _DASHED.fullmatch(text):
        _check_name("sources", text)
    return text


def _is_path(text: str, suffixes: Sequence[str]) -> bool:
    """Whether a text names a file or folder of this machine rather than a spec."""
    if "(" in text or "://" in text:
        return False
    path = Path(text).expanduser()
    return path.exists() or path.suffix.lower() in suffixes or "/" in text


def _existing(text: str) -> Path:
    path = Path(text).expanduser()
    if path.exists():
        return path
    place(text)  # refuses a store that is written wrongly
    beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, beside, n=1, cutoff=0.6)
    hint = f"did you mean '{path.parent / near[0]}'?" if near else "check the path"
    raise UsageError(f"there is no file or folder '{text}'; {hint}")


def _check_name(kind: str, text: str) -> None:
    """Raises `UsageError` for a spec whose name is no plugin, before anything is imported."""
    name = text.partition("(")[0].strip()
    if name in plugins.names(kind):
        return
    if kind == "models" and "(" not in text and not get_close_matches(name, plugins.names(kind)):
        raise UsageError(
            f"no model named '{name}'; for a library write timm:{name}, torchvision:{name} or "
            "hf:…; `steadyeye ls models` lists the others"
        )
    raise unknown({"models": "model", "sources": "source"}[kind], name, plugins.names(kind))


def _refuse_function_on_images(text: str) -> None:
    """Raises `UsageError` where `file.py:name`, which builds a model, names a function on images.

    The file is not imported. One that is not there or does not parse is refused where it is loaded.
    """
    home, _, name = text.rpartition(":")
    try:
        body = parse_module(Path(home).expanduser().read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            required = len(node.args.args) - len(node.args.defaults)
            if required == 1:
                needed = node.args.args[0].arg
                raise UsageError(
                    f"'{text}' needs '{needed}': if it takes images, did you mean "
                    f"'{Path(home).stem}:{name}'? If it builds a model, write "
                    f"{text}({needed}=…)"
                )


def _python_model(text: str) -> str:
    """A function on images is a `callable`; one without parameters builds a torch module."""
    path = text.removeprefix("py:")
    module = path.partition(":")[0]
    user_module(module, text)
    value = attribute(path)
    if not callable(value):
        raise UsageError(f"'{text}' is a {type(value).__name__}; give a function or a class")
    if not _needs_no_argument(value):
        return str(Spec("callable", {"path": path}))
    file = Path(getattr(sys.modules[module], "__file__", None) or module)
    return str(Spec("torch", {"path": f"py:{path}", **_name_classes(file, _width(value))}))


def _width(build: Callable[[], Any]) -> int | None:
    """The number of outputs of the module that a function builds, of an image of 224 pixels."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise plugins.not_installed("a torch module", error, "torch") from error
    model = build()
    if not isinstance(model, torch.nn.Module):
        return None
    with torch.inference_mode():
        scores = model.eval()(torch.zeros(1, 3, 224, 224))
    return int(scores.shape[1]) if isinstance(scores, torch.Tensor) and scores.ndim == 2 else None


def _needs_no_argument(function: Callable[..., Any]) -> bool:
    """Whether a call needs no argument: then it builds a model instead of being one."""
    parameters = inspect.signature(function).parameters.values()
    return not any(
        p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters
    )


def _model_of_path(path: Path) -> str:
    if path.is_dir():
        if (path / "model.json").is_file():
            return str(Spec("torch", {"path": str(path)}))
        if (path / "config.json").is_file():
            return str(Spec("hf", {"name": str(path)}))
    suffix = "" if path.is_dir() else path.suffix.lower()
    if suffix == ".onnx":
        return _onnx_spec(path)
    if suffix in DEPLOYED_FILES:
        arguments = {"path": str(path), "classes": _beside(path, None) or _assumed_classes(path)}
        return str(Spec(DEPLOYED_FILES[suffix], {k: v for k, v in arguments.items() if v}))
    if suffix == ".keras":
        return str(Spec("keras", {"path": str(path), **_name_classes(path, None)}))
    if suffix in TORCH_FILES:
        beside = _beside(path, None)
        return str(Spec("torch", {"path": str(path), **({"classes": beside} if beside else {})}))
    raise UsageError(describe_unread(path, (".onnx", ".keras", *DEPLOYED_FILES, *TORCH_FILES)))


def _onnx_spec(path: Path) -> str:
    from steadyeye.models.detectors.toolbox_exports import is_classifier
    from steadyeye.models.runtimes.network import read_names
    from steadyeye.models.runtimes.onnx_session import OnnxSession

    session = OnnxSession(path, str(path))
    width = session.described_outputs[0].shape[-1:]
    if width != (None,) and is_classifier(session):
        names = read_names(session.metadata)
        has_names = len(names) == width[0] != IMAGENET
        classes = {} if has_names else _name_classes(path, *width)
        return str(Spec("onnx", {"path": str(path), **classes}))
    return _detector_spec(path, session)


def _detector_spec(path: Path, session: "Network") -> str:
    """The full spec of a detector, with the decoder that its names and shapes tell."""
    from steadyeye.models.detectors.network_detector import DetectorOptions, read_format

    beside = _beside(path, None)
    form = read_format(session, str(path), DetectorOptions(classes=beside))
    # where nothing tells how many classes there are, the spec says which are taken
    assumed = "coco" if form.width is None else None
    classes = None if form.names else _beside(path, form.width) or assumed
    arguments = {"path": str(path), "decoder": form.decoder, "classes": classes}
    return str(Spec("onnx_detector", {k: v for k, v in arguments.items() if v is not None}))


def _assumed_classes(path: Path) -> str | None:
    """The class list that is taken for a .tflite detector which says nothing of its classes."""
    if path.suffix.lower() != ".tflite":
        return None
    try:
        from steadyeye.models.runtimes.litert_network import LiteRtNetwork
    except ModuleNotFoundError:
        return None
    network = LiteRtNetwork(str(path))
    return None if network.is_classifier or "names" in network.metadata else "coco"


def _beside(path: Path, width: int | None) -> str | None:
    """The class file beside a model file that has as many names as it has outputs."""
    for name in CLASS_FILES:
        file = path.with_name(name.format(stem=path.stem))
        if file.is_file() and width in (None, len(read(str(file)))):
            return str(file)
    return None


def _name_classes(path: Path, width: int | None) -> dict[str, str]:
    """The argument `classes` of a spec: a class file beside the model; none for 1,000 outputs.

    The model takes these for the classes of ImageNet-1k, and the run says so.
    """
    if beside := _beside(path, width):
        return {"classes": beside}
    if width == IMAGENET:
        return {}
    if width == 1:
        raise UsageError(
            f"'{path}' gives one number per image; give a model with one output for each class"
        )
    outputs = "classes" if width is None else number_of(width, "class")
    raise UsageError(
        f"the names of the {outputs} of '{path}' are not known; put a classes.txt next to it, one "
        "class per line, or write the spec with classes='…'"
    )


def _data_of_path(path: Path) -> str:
    if path.is_dir():
        return _data_of_folder(path)
    suffix = path.suffix.lower()
    if suffix in VIDEOS:
        return _videos(path)
    if suffix in (".yaml", ".yml"):
        return str(Spec("yolo", {"data": str(path)}))
    if suffix == ".json":
        return _annotations(path)
    if suffix in SUFFIXES:
        raise UsageError(f"'{path}' is one image; give the folder of images, or a video")
    kinds = ", ".join(sorted({*VIDEOS, *SUFFIXES, ".json", ".yaml"}))
    raise UsageError(
        f"'{path}' is no known kind of data; convert it to one of {kinds}, or write it as a spec"
    )


def _data_of_folder(folder: Path) -> str:
    if (folder / "set.json").is_file():
        return str(Spec("reviewed", {"root": str(folder)}))
    entries = sorted(folder.iterdir())
    if any(entry.suffix.lower() in VIDEOS for entry in entries):
        return _videos(folder)
    if any(entry.is_dir() and _holds_images(entry) for entry in entries):
        return str(Spec("image_folder", {"root": str(folder)}))
    if _holds_images(folder):
        raise UsageError(
            f"the folder '{folder}' holds images and no folders of them; for the frames of a "
            f"video write \"every_frame(path='{folder}', fps=25)\" with its frame rate, for "
            "photos put them into one folder per class"
        )
    raise UsageError(f"the folder '{folder}' holds no videos and no images; check the path")


def _holds_images(folder: Path) -> bool:
    return any(entry.suffix.lower() in SUFFIXES for entry in folder.iterdir())


def _videos(path: Path) -> str:
    """Anchors with labels where a sidecar is there, every frame without."""
    sidecar = find_sidecar(path)
    if sidecar is not None:
        return str(Spec("video", {"path": str(path), "labels": str(sidecar)}))
    return str(Spec("every_frame", {"path": str(path)}))


def find_sidecar(path: Path) -> Path | None:
    """The file of labels in a folder of videos, or next to a video or folder; None without one."""
    beside = [path.with_suffix(s) for s in (".json", ".csv")]
    inside = [path / f"labels{s}" for s in (".json", ".csv")] if path.is_dir() else []
    return next((sidecar for sidecar in (*inside, *beside) if sidecar.is_file()), None)


def _annotations(path: Path) -> str:
    """COCO's annotations, with the folder of images that lies beside them."""
    head = path.read_bytes()[:1_000_000].decode("utf-8", errors="replace")
    if not any(f'"{key}"' in head for key in ANNOTATION_KEYS):
        raise UsageError(f"'{path}' is not a COCO annotation file; write the data as a spec")
    places = (path.parent / "images", path.parent / path.stem, path.parent)
    images = next((place for place in places if place.is_dir() and _holds_images(place)), None)
    if images is None:
        raise UsageError(
            f"no images next to '{path}'; write \"coco(annotations='{path}', images='…')\", or "
            "leave out images to score saved detections"
        )
    return str(Spec("coco", {"annotations": str(path), "images": str(images)}))


def expand_job(job: Job) -> Job:
    """The job with the full specs of its models and data.

    Raises `UsageError` with one line for each that is wrong.
    """
    problems: list[str] = []

    def expand(texts: Sequence[str], form: Callable[[str], str]) -> tuple[str, ...]:
        full = []
        for text in texts:
            try:
                full.append(form(text))
            except UsageError as error:
                problems.append(str(error))
        return tuple(full)

    expanded = replace(
        job, models=expand(job.models, expand_model), data=expand(job.data, expand_data)
    )
    if problems:
        raise join_errors(problems)
    return expanded


def default_folder(job: Job) -> str:
    """`runs/<name>-<n>`: the folder of the same job where there is one, else the next number.

    The name is that of the model, or how many there are, and of the data.
    """
    name = f"{_short_name(job.models, 'models')}-{_short_name(job.data, 'sets')}"
    record = json.loads(json.dumps(job.record()))
    number = 1
    while (folder := Path("runs", f"{name}-{number}")).exists():
        if _job_in(folder) == record:
            break
        number += 1
    return str(folder)


def _job_in(folder: Path) -> Any:
    try:
        return json.loads((folder / "run.json").read_bytes())["job"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _short_name(texts: Sequence[str], several: str) -> str:
    if len(texts) != 1:
        return f"{len(texts)}-{several}"
    if Path(texts[0]).is_file():
        return Path(texts[0]).stem  # saved predictions
    spec = parse(texts[0])
    name = next((str(spec.kwargs[key]) for key in NAMING if key in spec.kwargs), spec.name)
    text = Path(name.rpartition(":")[2]).stem
    return "".join(c if c.isalnum() or c in "._" else "_" for c in text) or spec.name
