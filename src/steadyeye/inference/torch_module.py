"""A torch module run as it is."""

import copy
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, jit, nn

from steadyeye.core.errors import UsageError, unknown

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class _Own(threading.local):
    """The copy of each thread."""

    module: nn.Module | None = None


class ThreadCopies:
    """A copy of a module for each thread, all with the same weights in memory."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._own = _Own()
        self._copying = threading.Lock()

    def mine(self) -> nn.Module:
        """The copy of the thread that asks. Raises `UsageError` if it cannot be copied."""
        if self._own.module is None:
            with self._copying:
                self._own.module = _twin(self.module)
        return self._own.module


class TorchModule:
    """A `Forward` over an eval-mode module; `precision` other than fp32 runs under autocast.

    Each thread runs its own copy, since a module's `forward` may keep state; the weights are
    shared. A call uses one of torch's threads and then restores their number: two workers on two
    cores took 11 ms an image so (EfficientNet-Lite0), and 22 to 32 ms taking turns with two
    threads each, which spin while another thread decodes.
    """

    def __init__(self, module: nn.Module, precision: str = "fp32") -> None:
        if precision not in PRECISIONS:
            raise unknown("precision", precision, PRECISIONS)
        self.precision = precision
        self._copies = ThreadCopies(module)

    @property
    def module(self) -> nn.Module:
        """The module itself, which no thread runs but in its own copy."""
        return self._copies.module

    def __reduce__(self) -> tuple[type["TorchModule"], tuple[nn.Module, str]]:
        return TorchModule, (self._copies.module, self.precision)

    def __call__(self, batch: NDArray[np.float32], /) -> NDArray[np.float32]:
        """The scores of `batch`, (1, 3, h, w), as float32. Raises `UsageError` if it cannot run."""
        dtype = PRECISIONS[self.precision]
        reduced = self.precision != "fp32"
        module = self._copies.mine()
        with one_thread(), torch.inference_mode(), torch.autocast("cpu", dtype, enabled=reduced):
            try:
                scores = module(torch.from_numpy(batch))
            except (RuntimeError, TypeError, ValueError, AssertionError) as error:
                line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
                raise UsageError(f"the module cannot take input {batch.shape}: {line}") from error
        if not isinstance(scores, Tensor):
            raise UsageError(
                f"the module returns a {type(scores).__name__}; "
                "wrap it so that it returns the tensor of scores, (images, classes)"
            )
        # a copy, because a module may return a view of the buffer that the next image overwrites
        return scores.float().numpy().copy()


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread in this thread; the number that others use stays."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _twin(module: nn.Module) -> nn.Module:
    """A copy with the same weights in memory; scripted and exported code keeps no state."""
    if isinstance(module, jit.ScriptModule | fx.GraphModule):
        return module
    weights = {id(each): each for each in itertools.chain(module.parameters(), module.buffers())}
    try:
        return copy.deepcopy(module, weights)
    except Exception as error:
        # whatever the module holds may refuse in its own way
        raise UsageError(
            f"{type(module).__name__} cannot be copied for each thread ({error}); "
            "make what it holds copyable, or export it to ONNX"
        ) from error
