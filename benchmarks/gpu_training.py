"""What repeatable training costs on a GPU: milliseconds per step, by settings of torch.

    python benchmarks/gpu_training.py [--timm resnet50 …] [--batch 64] [--steps 30] [--rounds 3]

Needs a GPU. Each network has random weights, and one batch of random images stays on the GPU, so
that nothing but the step itself is timed: forward, backward and Adam, by the engine of
`steadyeye finetune`. The settings take turns:

- `repeatable`: as `finetune` trains. Algorithms that repeat their bits; fp32 without TF32.
- `any algorithm`: the same precision, but torch may choose algorithms that do not repeat.
- `with TF32` (fp32 only): and round the inputs of products to ten bits, torch's fastest fp32.

Printed are the median milliseconds per step and the ratio of `repeatable` to each.
"""

import argparse
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter

import torch
from torch import nn

from steadyeye.training.engine import Engine, surroundings
from steadyeye.training.hyperparameters import Course

SETTINGS = ("repeatable", "any algorithm", "with TF32")


@contextmanager
def settings(name: str) -> Iterator[None]:
    """A block with one of `SETTINGS`."""
    with surroundings():
        if name != "repeatable":
            torch.use_deterministic_algorithms(False)
            torch.backends.cudnn.deterministic = False
        if name == "with TF32":
            torch.backends.cuda.matmul.allow_tf32 = True
            torch.backends.cudnn.allow_tf32 = True
        yield


def cross_entropy(images: torch.Tensor, labels: torch.Tensor, module: nn.Module) -> torch.Tensor:
    """The mean loss of a batch."""
    return nn.functional.cross_entropy(module(images), labels)


def measure(name: str, precision: str, args) -> dict[str, float]:
    """The median milliseconds per step by setting."""
    import timm

    torch.manual_seed(0)
    module = timm.create_model(name, num_classes=10)
    size = module.default_cfg["input_size"][-1]
    images = torch.rand(args.batch, 3, size, size, device="cuda")
    labels = torch.arange(args.batch, device="cuda") % 10
    loss = partial(cross_entropy, images, labels)
    engine = Engine(module, Course(batch=args.batch, rate=1e-4, precision=precision))
    times = {setting: [] for setting in SETTINGS[: 3 if precision == "fp32" else 2]}
    for _ in range(args.rounds):
        for setting, steps in times.items():
            with settings(setting):
                for number in range(args.steps + 5):
                    begin = perf_counter()
                    engine.step(number, 1e-4, loss, 1.0)
                    torch.cuda.synchronize()
                    if number >= 5:
                        steps.append(perf_counter() - begin)
    return {setting: 1000 * statistics.median(steps) for setting, steps in times.items()}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timm", nargs="+", default=["resnet50"])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, batch {args.batch}")
    print(f"{'network':24}{'precision':>10}" + "".join(f"{setting:>24}" for setting in SETTINGS))
    for name in args.timm:
        for precision in ("fp32", "bf16", "fp16"):
            times = measure(name, precision, args)
            cells = [
                f"{value:.1f} ms ({times['repeatable'] / value:.2f})" for value in times.values()
            ]
            print(f"{name:24}{precision:>10}" + "".join(f"{cell:>24}" for cell in cells))


if __name__ == "__main__":
    main()
