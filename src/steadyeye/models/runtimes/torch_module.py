"""Runs a torch module as it is, on the CPU or on GPUs."""

import copy
import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, jit, nn

from steadyeye.core.errors import UsageError, unknown
from steadyeye.models.runtimes.classifier import Recipe
from steadyeye.models.runtimes.devices import CPU, exact, turn

FAILURES = (
    *(RuntimeError, TypeError, ValueError, AssertionError),
    *(AttributeError, LookupError, ArithmeticError, MemoryError),
)
"""The errors that a module's code raises for an input that it cannot take."""
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its type without a message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


class _Own(threading.local):
    """The copy of each thread, and its device."""

    module: nn.Module | None = None
    device: torch.device = CPU


class ThreadCopies:
    """A copy of a module for each thread, with the same weights in memory.

    `devices`: devices of the copies; threads take them in turn, and copies on one device share its
    weights.
    """

    def __init__(self, module: nn.Module, devices: Sequence[torch.device] = (CPU,)) -> None:
        self.module = module
        self.devices = tuple(devices)
        self._own = _Own()
        self._copying = threading.Lock()
        self._next = itertools.cycle(self.devices)
        self._there: dict[torch.device, nn.Module] = {CPU: module}

    def mine(self) -> tuple[nn.Module, torch.device]:
        """The copy of the calling thread, and its device.

        Raises `UsageError` if it cannot be copied.
        """
        if self._own.module is None:
            with self._copying:
                self._own.device = next(self._next)
                self._own.module = _twin(self._on(self._own.device))
        return self._own.module, self._own.device

    @contextmanager
    def infer_pass(self) -> Iterator[tuple[nn.Module, torch.device]]:
        """A block of one pass through the thread's copy, without gradients, in one CPU thread."""
        try:
            module, device = self.mine()
            with one_thread(), torch.inference_mode(), turn(device):
                yield module, device
        except torch.OutOfMemoryError as error:
            raise UsageError(
                "the GPU has no memory left; give a smaller --batch, or free some"
            ) from error

    def _on(self, device: torch.device) -> nn.Module:
        """The module whose weights are on a device."""
        if device not in self._there:
            self._there[device] = _copy_module(self.module, {}).to(device)
            if device.type == "cuda":
                exact()
                # passes have streams of their own, which do not wait for this copy
                torch.cuda.synchronize(device)
        return self._there[device]


class TorchModule:
    """A `Forward` over an eval-mode module; `precision` other than fp32 runs under autocast.

    Each thread runs its own copy, since a module's `forward` may keep state; the weights are
    shared. On the CPU a call uses one of torch's threads and then restores their number: two
    workers on two cores took 11 ms an image so (EfficientNet-Lite0), and 22 to 32 ms taking turns
    with two threads each, which spin while another thread decodes. `devices`: the GPUs that threads
    compute on, in turn.
    """

    def __init__(
        self,
        module: nn.Module,
        precision: str = "fp32",
        devices: Sequence[torch.device] = (CPU,),
    ) -> None:
        if precision not in PRECISIONS:
            raise unknown("precision", precision, PRECISIONS)
        self.precision = precision
        self._copies = ThreadCopies(module, devices)

    @property
    def module(self) -> nn.Module:
        """The module itself, which no thread runs but in its own copy."""
        return self._copies.module

    @property
    def devices(self) -> tuple[torch.device, ...]:
        """Its devices."""
        return self._copies.devices

    def __reduce__(
        self,
    ) -> tuple[type["TorchModule"], tuple[nn.Module, str, tuple[torch.device, ...]]]:
        return TorchModule, (self._copies.module, self.precision, self.devices)

    def __call__(self, batch: NDArray[np.float32], /) -> NDArray[np.float32]:
        """The scores of `batch`, (n, 3, h, w), as float32. Raises `UsageError` if it cannot run."""
        with self._copies.infer_pass() as (module, device), self._autocast(device):
            try:
                scores = module(torch.from_numpy(batch).to(device, non_blocking=True))
            except torch.OutOfMemoryError:
                raise
            except FAILURES as error:
                raise UsageError(
                    f"the module cannot take input {batch.shape}: {first_line(error)}; check the "
                    "size in its recipe, and its weights"
                ) from error
            if not isinstance(scores, Tensor):
                raise UsageError(
                    f"the module returns a {type(scores).__name__}; "
                    "wrap it so that it returns the tensor of scores, (images, classes)"
                )
            # a copy, because a module may return a view of the buffer that the next image
            # overwrites; from a GPU it comes once all is computed
            return scores.float().cpu().numpy().copy()

    def _autocast(self, device: torch.device) -> torch.autocast:
        dtype = PRECISIONS[self.precision]
        # its cache of weights is one for all threads, whose streams do not wait for each other
        return torch.autocast(
            device.type, dtype, enabled=self.precision != "fp32", cache_enabled=False
        )


class _Threads:
    """The number of torch's threads outside blocks with one thread.

    A new thread gets the number that was set last, which another thread may have set for a pass.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here = threading.local()
        self._inside = self._number = 0

    @contextmanager
    def limit_to_one(self) -> Iterator[None]:
        """A block with one thread in this thread, nested or not."""
        depth = getattr(self._here, "depth", 0)
        if depth:
            yield
            return
        with self._lock:
            if not self._inside:
                self._number = torch.get_num_threads()
            self._inside += 1
            torch.set_num_threads(1)
        self._here.depth = 1
        try:
            yield
        finally:
            self._here.depth = 0
            with self._lock:
                self._inside -= 1
                torch.set_num_threads(self._number)


one_thread = _Threads().limit_to_one
"""One torch thread in this thread; the number of other threads is unchanged."""


def _twin(module: nn.Module) -> nn.Module:
    """A copy with the same weights in memory; scripted and exported code keeps no state."""
    if isinstance(module, jit.ScriptModule | fx.GraphModule):
        return module
    weights: dict[int, Any] = {
        id(tensor): tensor for tensor in itertools.chain(module.parameters(), module.buffers())
    }
    return _copy_module(module, weights)


def _copy_module(module: nn.Module, shared: dict[int, Any]) -> nn.Module:
    """A copy of the module and of all its parts, except those in `shared`, by id."""
    try:
        return copy.deepcopy(module, shared)
    except Exception as error:
        # whatever the module holds may refuse in its own way
        raise UsageError(
            f"{type(module).__name__} cannot be copied for each thread ({error}); "
            "make what it holds copyable, or export it to ONNX"
        ) from error


class TorchGradient:
    """A `ClassGradient` over an eval-mode module with its recipe, in fp32; safe from any thread.

    It is the gradient of the log-odds log(p / (1 − p)): the direction is that of the probability's
    gradient, which rounds to zero if the model is certain.
    """

    def __init__(self, module: nn.Module, recipe: Recipe) -> None:
        self.recipe = recipe
        self._copies = ThreadCopies(module)

    @property
    def module(self) -> nn.Module:
        """The module itself, which no thread runs but in its own copy."""
        return self._copies.module

    def __reduce__(self) -> tuple[type["TorchGradient"], tuple[nn.Module, Recipe]]:
        return TorchGradient, (self._copies.module, self.recipe)

    def __call__(
        self, image: NDArray[np.float32], members: Sequence[int], /
    ) -> NDArray[np.float32]:
        """(h, w, 3) float32: the gradient at `image`, for the best of the `members` classes."""
        preprocessing = self.recipe.preprocessing
        module, _ = self._copies.mine()
        with one_thread(), torch.enable_grad():
            pixels = torch.from_numpy(image.copy()).requires_grad_()
            mean, std = torch.tensor(preprocessing.mean), torch.tensor(preprocessing.std)
            normalised = (pixels - mean) / std
            if preprocessing.order == "bgr":
                normalised = normalised.flip(-1)
            scores = module(normalised.permute(2, 0, 1)[None]).reshape(-1)
            best = max(members, key=scores.detach().numpy().__getitem__)
            odds = self._log_odds(scores, best)
            (gradient,) = torch.autograd.grad(odds, pixels)
        return np.asarray(gradient.numpy(), dtype=np.float32)

    def _log_odds(self, scores: Tensor, index: int) -> Tensor:
        if self.recipe.output == "probabilities":
            return torch.logit(scores[index], eps=1e-7)
        others = torch.cat([scores[:index], scores[index + 1 :]])
        return scores[index] - torch.logsumexp(others, 0)
