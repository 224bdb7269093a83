"""One training step of a network on accelerate's devices: a CPU, a GPU, or many."""

import copy
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import InitProcessGroupKwargs, broadcast_object_list
from torch import Tensor, nn, optim

from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import stream
from steadyeye.models.runtimes.devices import exact
from steadyeye.training.checkpoint import State
from steadyeye.training.hyperparameters import Course

MOMENTUM = 0.1
"""Least momentum of the running mean and variance of batch normalisation; torch's own default.

EfficientNet's 0.01 averages over a hundred steps with earlier weights: a short training would be
validated, and its best weights chosen, with statistics that fit none of its networks.
"""

WAIT = timedelta(hours=4)
"""How long other processes wait for the validation by the first one."""

Loss = Callable[[nn.Module], Tensor]


class Engine:
    """A copy of a module with its optimiser; the module itself is unchanged."""

    def __init__(self, module: nn.Module, course: Course) -> None:
        self._course = course
        self._accelerator = _accelerator(course.precision)
        own = _following(copy.deepcopy(module))
        self._module, self._optimizer = self._accelerator.prepare(own, _optimizer(own, course))

    @property
    def rank(self) -> int:
        """The index of this process; the first one writes and validates."""
        return int(self._accelerator.process_index)

    @property
    def ranks(self) -> int:
        """The number of processes of the training."""
        return int(self._accelerator.num_processes)

    @property
    def device(self) -> str:
        """The device of the network, such as `cpu` or `cuda`."""
        return str(self._accelerator.device.type)

    def step(self, number: int, rate: float, loss: Loss, weight: float) -> float:
        """Takes one step; returns the loss of the whole batch before it.

        `number`: of the step, the seed of its random numbers. `weight`: of `share_batch`. A loss
        that is not finite is returned without a step.
        """
        self._seed("step", number)
        self._module.train()
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.zero_grad()
        weighted_loss = loss(self._module) * weight
        whole = float(self._accelerator.reduce(weighted_loss.detach(), "mean"))
        if torch.isfinite(torch.tensor(whole)):
            self._accelerator.backward(weighted_loss)
            self._optimizer.step()
        return whole

    def judge_module(
        self, number: int, judge: Callable[[nn.Module], Mapping[str, float]]
    ) -> Mapping[str, float]:
        """The validation of the module in eval mode by the first process, sent to all processes."""
        self._seed("judge", number)
        shared: list[Any] = [None]
        if self.rank == 0:
            bare = self._accelerator.unwrap_model(self._module).eval()
            with torch.no_grad():
                shared = [dict(judge(bare))]
        if self.ranks > 1:
            broadcast_object_list(shared)
        values: Mapping[str, float] = shared[0]
        return values

    def sound(self) -> bool:
        """Whether all weights are finite numbers."""
        return all(
            bool(torch.isfinite(value).all())
            for value in self._bare().state_dict().values()
            if value.is_floating_point()
        )

    def state(self, history: Mapping[str, Any]) -> State:
        """The state to store; `history`: as `History.record`."""
        scaler = self._accelerator.scaler
        return State(
            step=len(history["losses"]),
            module=_on_cpu(self._bare().state_dict()),
            optimizer=_on_cpu(self._optimizer.state_dict()),
            scaler={} if scaler is None else scaler.state_dict(),
            history=history,
            threads=torch.get_num_threads(),
            device=self.device,
        )

    def restore(self, state: State) -> list[tuple[str, str, str]]:
        """Restores a stored state with its number of threads; returns the differences.

        Each is (setting, now, before).
        """
        torch.set_num_threads(state.threads)
        self._bare().load_state_dict(state.module)
        self._optimizer.load_state_dict(state.optimizer)
        if self._accelerator.scaler is not None and state.scaler:
            self._accelerator.scaler.load_state_dict(state.scaler)
        return [("device", self.device, state.device)] if self.device != state.device else []

    def together(self) -> None:
        """Waits for the other processes."""
        self._accelerator.wait_for_everyone()

    def _bare(self) -> nn.Module:
        module: nn.Module = self._accelerator.unwrap_model(self._module)
        return module

    def _seed(self, purpose: str, number: int) -> None:
        draw = stream(self._course.seed, purpose, str(number), str(self.rank))
        torch.manual_seed(int(draw.integers(2**63)))


@contextmanager
def surroundings() -> Iterator[None]:
    """A block after which torch's random state and number of threads are restored."""
    before = torch.get_num_threads()
    devices = range(torch.cuda.device_count())
    with torch.random.fork_rng(devices=list(devices)), _repeatable():
        try:
            yield
        finally:
            torch.set_num_threads(before)


@contextmanager
def _repeatable() -> Iterator[None]:
    """A block in which a GPU repeats its bits, by each operator that has an algorithm for it."""
    if not torch.cuda.is_available():
        yield
        return
    exact()
    # required by cuBLAS, which reads it when its first handle is created
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings():
            # an operator without such an algorithm: the last bits may differ, as the guide says
            warnings.filterwarnings("ignore", ".*deterministic", UserWarning)
            yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=only_warned)


def first() -> bool:
    """Whether this is the first or only process of the training."""
    return os.environ.get("RANK", "0") == "0"


def _accelerator(precision: str) -> Accelerator:
    mixed = "no" if precision == "fp32" else precision
    if AcceleratorState._shared_state and AcceleratorState().mixed_precision != mixed:
        # accelerate has one precision per process, and this process trained in another before
        AcceleratorState._reset_state()
    try:
        accelerator = Accelerator(
            mixed_precision=mixed, kwargs_handlers=[InitProcessGroupKwargs(timeout=WAIT)]
        )
    except (ValueError, NotImplementedError) as error:
        raise UsageError(f"--precision {precision}: {error}") from error
    if precision == "fp16" and accelerator.device.type == "cpu":
        raise UsageError("--precision fp16 needs a GPU; on a CPU take bf16 or fp32")
    return accelerator


def _optimizer(module: nn.Module, course: Course) -> optim.Optimizer:
    learned = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not learned:
        raise UsageError(f"{type(module).__name__} has no weights to train; choose another model")
    if course.optimizer == "sgd":
        return optim.SGD(learned, course.rate, momentum=course.momentum, weight_decay=course.decay)
    return optim.Adam(learned, course.rate, weight_decay=course.decay)


def _following(module: nn.Module) -> nn.Module:
    """The module itself, with at least `MOMENTUM` in its batch normalisation."""
    for layer in module.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.momentum is not None:
            layer.momentum = max(layer.momentum, MOMENTUM)
    return module


def _on_cpu(state: Any) -> Any:
    """A copy of a state dict, however nested, with its tensors on the CPU."""
    if isinstance(state, Tensor):
        return state.detach().cpu().clone()
    if isinstance(state, Mapping):
        return {key: _on_cpu(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return [_on_cpu(value) for value in state]
    return state
