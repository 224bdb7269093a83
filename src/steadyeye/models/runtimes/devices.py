"""GPUs: the available ones, pinned memory for copies, and batch sizes that fit."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue

import numpy as np
import torch
from numpy.typing import NDArray

from steadyeye.core.abilities import PASSES, largest
from steadyeye.core.errors import UsageError

CPU = torch.device("cpu")

SPARE = 0.8  # of the memory that is free may be filled


def gpus() -> tuple[torch.device, ...]:
    """The GPUs that this process may use, in order. Raises `UsageError` if there are none."""
    if not torch.cuda.is_available():
        built = "" if torch.version.cuda else " and this torch is built without CUDA"
        raise UsageError(
            f"runtime='cuda': no GPU is visible{built}; install torch for CUDA, or leave "
            "runtime out to infer on the processor"
        )
    devices = tuple(torch.device("cuda", i) for i in range(torch.cuda.device_count()))
    for device in devices:
        _streams(device)  # made here, before threads come to them at once
    return devices


def exact() -> None:
    """Makes fp32 exact on the GPUs of this process, and passes of one shape repeatable."""
    # TF32 rounds to ten bits, and cuDNN uses it unless it is told not to
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    # the same kernel for the same shape
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True


def name_gpus(devices: Sequence[torch.device]) -> str:
    """The names of the GPUs among the devices; empty if there are none."""
    names = [torch.cuda.get_device_name(device) for device in devices if device.type == "cuda"]
    return ", ".join(dict.fromkeys(names))


def allocate_pinned(shape: Sequence[int]) -> NDArray[np.float32]:
    """Pinned memory for an input, which is copied while the GPU works."""
    pages: NDArray[np.float32] = torch.empty(
        tuple(shape), dtype=torch.float32, pin_memory=torch.cuda.is_available()
    ).numpy()
    return pages


@contextmanager
def turn(device: torch.device) -> Iterator[None]:
    """A block of one pass on a device, when it is the caller's turn.

    Results of a GPU are complete once they are copied to the CPU.
    """
    if device.type != "cuda":
        yield
        return
    streams = _streams(device)
    stream = streams.get()
    try:
        with torch.cuda.device(device), torch.cuda.stream(stream):
            yield
    finally:
        streams.put(stream)


@cache
def _streams(device: torch.device) -> "SimpleQueue[torch.cuda.Stream]":
    """The free streams of a GPU; a stream cannot reuse the memory of another one."""
    free: SimpleQueue[torch.cuda.Stream] = SimpleQueue()
    for _ in range(PASSES):
        free.put(torch.cuda.Stream(device))  # type: ignore[no-untyped-call]
    return free


def fitting(
    forward: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    shape: Sequence[int],
    devices: Sequence[torch.device],
) -> int:
    """Images per pass, a power of two up to `MOST`, so that `PASSES` passes fit on each device.

    `shape`: of one input image. `forward`: was called with one image before, so its weights are
    loaded; the calling thread computes on the first of the devices. 1 also if the network takes
    only one image.
    """

    def fits(images: int) -> bool:
        return _fits(forward, np.zeros((images, *shape), dtype=np.float32), devices)

    return largest(fits)


def _fits(
    forward: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    batch: NDArray[np.float32],
    devices: Sequence[torch.device],
) -> bool:
    first = devices[0]
    measured = first.type == "cuda"
    torch.cuda.empty_cache()
    free = min(torch.cuda.mem_get_info(device)[0] for device in devices) if measured else 0
    before = torch.cuda.memory_allocated(first) if measured else 0
    if measured:
        torch.cuda.reset_peak_memory_stats(first)
    try:
        rows = len(forward(batch))
    except UsageError:
        # no memory, or a network that was made for one image
        return False
    finally:
        torch.cuda.empty_cache()
    peak = torch.cuda.max_memory_allocated(first) - before if measured else 0
    return rows == len(batch) and PASSES * peak <= SPARE * free
