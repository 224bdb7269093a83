"""Models on a GPU compared with the same models on processors: time and predictions.

    python benchmarks/gpu.py --data FOLDER [--frames 4096] [--rounds 3] [--timm resnet50]
        [--classifier FILE.onnx] [--detector FILE.onnx=DECODER] [--workers N] [--processes N …]
        [--ways processors threads processes loop]

Needs a GPU, and onnxruntime-gpu in place of onnxruntime for files. Frames are links to the JPEG
files below the folder, so each is read and decoded many times. All ways take turns (`--rounds`):
whole runs (decoded, prepared, inferred, written and sealed) on the processors and on the GPU with
one thread per processor, on the GPU with processes, and, for networks of timm, which have random
weights, a plain loop: a DataLoader with as many processes and 64 images per pass of eager torch,
fp32, nothing written. Printed are the median frames per second of the whole and, in brackets, of
the middle eight tenths, when all workers have their model. Then both runtimes predict 64 frames,
the GPU twice.
"""

import argparse
import os
import statistics
import tempfile
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from clock import Clock

from steadyeye.core import plugins
from steadyeye.core.spec import parse
from steadyeye.data.images import image_file
from steadyeye.runner import job, validate
from steadyeye.runner.run import run

ANSWERED = 64
WAYS = ("processors", "threads", "processes", "loop")


@dataclass(frozen=True)
class Subject:
    """A network by its spec with a placeholder for `runtime`; `loop`: its name in timm."""

    name: str
    spec: str
    loop: str = ""

    def build(self, runtime: str):
        """The model on a runtime."""
        return plugins.build("models", parse(self.spec.format(runtime=runtime)))


def read_subjects(args, weights: Path) -> list[Subject]:
    """The networks in the arguments; those of timm with random weights, written to a folder."""
    subjects = []
    for name in args.timm:
        import timm
        import torch

        torch.manual_seed(0)
        torch.save(timm.create_model(name).state_dict(), weights / f"{name}.pt")
        spec = f"timm(name='{name}', checkpoint='{weights}/{name}.pt', runtime='{{runtime}}')"
        subjects.append(Subject(f"{name}, torch", spec, name))
    for file in args.classifier:
        spec = f"onnx(path='{file}', classes='imagenet1k', runtime='{{runtime}}')"
        subjects.append(Subject(f"{Path(file).stem}, ONNX", spec))
    for pair in args.detector:
        file, decoder = pair.rsplit("=", 1)
        spec = f"onnx_detector(path='{file}', decoder='{decoder}', runtime='{{runtime}}')"
        subjects.append(Subject(f"{Path(file).stem}, ONNX", spec))
    return subjects


def link_frames(data: Path, folder: Path, frames: int) -> list[Path]:
    """Fills a folder with numbered links to the JPEG files below `data`; returns the files."""
    files = sorted(path.resolve() for path in data.rglob("*.jpg"))
    for i in range(frames):
        (folder / f"{i:06d}.jpg").symlink_to(files[i % len(files)])
    return files


def time_run(spec: str, folder: Path, workers: int, engine: str = "local") -> Clock:
    """The clock of a whole run of a model that is built already."""
    with tempfile.TemporaryDirectory() as out:
        flags = {"models": [spec], "data": [f"image_folder(root='{folder}')"], "cache": "off"}
        flags |= {"out": str(Path(out) / "run"), "workers": workers, "engine": engine}
        plan, clock = validate.check(job.read(None, flags)), Clock()
        run(plan, clock)
        return clock


def time_loop(name: str, folder: Path, workers: int) -> Clock:
    """The clock of a DataLoader and eager torch on the GPU, without writing."""
    import timm
    import torch
    from PIL import Image

    network = timm.create_model(name, pretrained=False).eval().cuda()
    config = timm.data.resolve_model_data_config(network)
    transform = timm.data.create_transform(**config, is_training=False)
    files = sorted(folder.iterdir())

    class Frames(torch.utils.data.Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, index):
            return transform(Image.open(files[index]).convert("RGB"))

    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    clock = Clock()
    loader = torch.utils.data.DataLoader(Frames(), 64, num_workers=workers, pin_memory=True)
    with torch.inference_mode():
        for batch in loader:
            network(batch.cuda(non_blocking=True)).cpu()
            clock.add(len(batch))
    return clock


def compare_answers(subject: Subject, files: list[Path]) -> str:
    """The differences of the GPU's predictions from the processor's and between its own two."""
    images = [image_file.read(path) for path in files[:: max(1, len(files) // ANSWERED)]]
    answers = []
    for runtime in ("onnx", "cuda", "cuda"):
        answers.append(subject.build(runtime)(images))
    expected, on_gpu, again = answers
    if isinstance(expected, np.ndarray):
        changed = int((expected.argmax(1) != on_gpu.argmax(1)).sum())
        far, same = np.abs(expected - on_gpu).max(), np.array_equal(on_gpu, again)
        return f"scores within {far:.1e}, {changed} of {len(images)} best classes differ, " + (
            "the same bytes again" if same else "OTHER bytes again"
        )
    pairs = list(zip(expected, on_gpu, again, strict=True))
    unequal = sum(len(a.scores) != len(b.scores) for a, b, _ in pairs)
    alike = [(a, b) for a, b, _ in pairs if len(a.scores) == len(b.scores) > 0]
    scores = max(np.abs(a.scores - b.scores).max() for a, b in alike)
    boxes = max(np.abs(a.boxes - b.boxes).max() for a, b in alike)
    same = all(
        np.array_equal(b.boxes, c.boxes) and np.array_equal(b.scores, c.scores) for _, b, c in pairs
    )
    return (
        f"{sum(len(a.scores) for a, *_ in pairs)} objects; {unequal} of {len(pairs)} frames have "
        f"another number; scores within {scores:.1e}, boxes within {boxes:.1e} pixels; "
        + ("the same bytes again" if same else "OTHER bytes again")
    )


def main() -> None:
    """Reads the arguments, and prints the table and how the answers compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--frames", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=3)
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--workers", type=int, default=cores)
    parser.add_argument("--processes", type=int, nargs="*", default=[max(1, cores // 2), cores])
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=WAYS)
    for name in ("timm", "classifier", "detector"):
        parser.add_argument(f"--{name}", nargs="*", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as weights:
        folder = Path(name)
        files = link_frames(args.data, folder, args.frames)
        subjects = read_subjects(args, Path(weights))
        for subject in subjects:
            print_rates(subject, folder, args)
        for subject in subjects:
            print(f"{subject.name}: {compare_answers(subject, files)}", flush=True)


def print_rates(subject: Subject, folder: Path, args) -> None:
    """Prints one line per way: the median frames per second, of the whole and of the middle."""
    on_processors, on_gpu = (subject.spec.format(runtime=name) for name in ("onnx", "cuda"))
    ways = {
        "processors": lambda: time_run(on_processors, folder, args.workers),
        "threads": lambda: time_run(on_gpu, folder, args.workers),
        **{
            f"{count} processes": partial(time_run, on_gpu, folder, 0, f"local(processes={count})")
            for count in args.processes
        },
    }
    if subject.loop:
        ways["loop"] = lambda: time_loop(subject.loop, folder, args.workers)
    ways = {name: way for name, way in ways.items() if name.split()[-1] in args.ways}
    clocks: dict[str, list[Clock]] = {name: [] for name in ways}
    for _, name in product(range(args.rounds), ways):
        clocks[name].append(ways[name]())
    for name, rounds in clocks.items():
        whole, steady = (
            statistics.median(getattr(clock, rate) for clock in rounds)
            for rate in ("whole", "steady")
        )
        print(f"| {subject.name} | {name} | {whole:,.0f} ({steady:,.0f}) |", flush=True)


if __name__ == "__main__":
    main()
