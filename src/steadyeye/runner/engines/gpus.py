"""The GPUs of this machine, one for each worker process."""

import ctypes
import os
from collections.abc import Mapping

VARIABLE = "CUDA_VISIBLE_DEVICES"


def assign_gpu(worker: int) -> Mapping[str, str]:
    """What the environment of a worker process, by its number from 0, says of the GPU it may use.

    Where several GPUs may be used here, workers take them in turn; empty where there is no choice.
    """
    gpus = list_gpus()
    return {VARIABLE: gpus[worker % len(gpus)]} if len(gpus) > 1 else {}


def list_gpus() -> list[str]:
    """The GPUs that this process may use, as `CUDA_VISIBLE_DEVICES` has them."""
    names = os.environ.get(VARIABLE)
    if names is None:
        return [str(number) for number in range(_count_gpus())]
    return [name for name in map(str.strip, names.split(",")) if name]


def _count_gpus() -> int:
    """The GPUs of NVIDIA's driver, without CUDA, after which this process could not fork."""
    try:
        driver = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return 0
    count = ctypes.c_uint(0)
    if driver.nvmlInit_v2() or driver.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return 0
    return count.value
