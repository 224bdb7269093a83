"""GPUs: which there are, the memory that is copied to them while they work, how much fits."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError

CPU = torch.device("cpu")

MOST = 64
"""Images a pass at most. A page of them, 224 × 224, is 39 MB of locked memory a thread."""

PASSES = 2
"""Passes a GPU is given at a time: it computes one while the input of the next is copied."""

SPARE = 0.8  # of the memory that is free may be filled


def gpus() -> tuple[torch.device, ...]:
    """The GPUs that this process may use, in their order. Raises `UsageError` for none.

    TF32, which rounds to ten bits, is switched off in this process: fp32 is fp32.
    """
    if not torch.cuda.is_available():
        built = "" if torch.version.cuda else " and this torch is built without CUDA"
        raise UsageError(
            f"runtime='cuda': no GPU is to be seen{built}; install torch for CUDA, or leave "
            "runtime out to infer on the processor"
        )
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    # the same kernel for the same shape, so that a run again gives the same bytes
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    return tuple(torch.device("cuda", i) for i in range(torch.cuda.device_count()))


def noted(devices: Sequence[torch.device]) -> dict[str, str]:
    """What a record says of the GPUs; nothing of the processor.

    A note, which does not tell models apart: on another GPU scores differ in their last bits.
    """
    names = [torch.cuda.get_device_name(each) for each in devices if each.type == "cuda"]
    return {"device_note": ", ".join(dict.fromkeys(names))} if names else {}


def locked(shape: Sequence[int]) -> NDArray[np.float32]:
    """Memory for an input that stays where it is, so that it is copied while the GPU works."""
    pages: NDArray[np.float32] = torch.empty(
        tuple(shape), dtype=torch.float32, pin_memory=torch.cuda.is_available()
    ).numpy()
    return pages


class _Streams(threading.local):
    """The streams of each thread."""

    def __init__(self) -> None:
        self.streams: dict[torch.device, torch.cuda.Stream] = {}


class Turns:
    """Whose pass a device computes: at most `PASSES` at a time, each thread on its own stream."""

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self._free = {each: threading.Semaphore(PASSES) for each in devices}
        self._own = _Streams()

    @contextmanager
    def turn(self, device: torch.device) -> Iterator[None]:
        """A block of one pass. What it computes is there once it is copied to the processor."""
        if device.type != "cuda":
            yield
            return
        with self._free[device], torch.cuda.device(device), torch.cuda.stream(self._stream(device)):
            yield

    def _stream(self, device: torch.device) -> torch.cuda.Stream:
        if device not in self._own.streams:
            self._own.streams[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        return self._own.streams[device]


def fitting(
    forward: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    shape: Sequence[int],
    device: torch.device,
) -> int:
    """Images a pass, a power of two up to `MOST`, so that `PASSES` of them fit on a device.

    `shape`: of one image as the network takes it. `forward`: has been called before, so that the
    weights are on the device, where the calling thread computes. Raises `UsageError` where not
    even one fits.
    """
    images = MOST
    while images:
        if _fits(forward, np.zeros((images, *shape), dtype=np.float32), device):
            return images
        images //= 2
    raise UsageError("the GPU has no memory for one image; free some of it, or give a smaller size")


def _fits(
    forward: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    batch: NDArray[np.float32],
    device: torch.device,
) -> bool:
    measured = device.type == "cuda"
    free = torch.cuda.mem_get_info(device)[0] if measured else 0
    held = torch.cuda.memory_allocated(device) if measured else 0
    if measured:
        torch.cuda.reset_peak_memory_stats(device)
    try:
        forward(batch)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return False
    peak = torch.cuda.max_memory_allocated(device) - held if measured else 0
    return PASSES * peak <= SPARE * free
