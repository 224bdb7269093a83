"""The origin of an output: versions of the relevant packages and the commit of this code."""

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import steadyeye

PACKAGES = (
    "accelerate",
    "av",
    "numpy",
    "onnxruntime",
    "onnxruntime-gpu",
    "opencv-python-headless",
    "pyarrow",
    "scenedetect-headless",
    "scipy",
    "simplejpeg",
    "timm",
    "torch",
    "torchvision",
    "transformers",
)


@cache
def provenance() -> dict[str, str]:
    """Versions of Python, steadyeye and the installed packages, and the commit if one is known."""
    record = {"steadyeye": steadyeye.__version__, "commit": _commit()}
    record["python"] = platform.python_version()
    record["platform"] = f"{platform.system()} {platform.machine()}"
    for package in PACKAGES:
        try:
            record[package] = version(package)
        except PackageNotFoundError:
            continue
    return record


def _commit() -> str:
    """The git commit of this code, `-dirty` if changed; `release` outside a checkout."""
    folder = Path(__file__).resolve().parent
    git = ["git", "-C", str(folder)]
    tracked = ("ls-files", "--error-unmatch", Path(__file__).name)
    described = ("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    try:
        both = [
            subprocess.run([*git, *command], capture_output=True, text=True, check=False)  # noqa: S603
            for command in (tracked, described)
        ]
    except OSError:
        return "release"
    return "release" if any(done.returncode for done in both) else both[1].stdout.strip()
