"""Steps against the model's own gradient."""

import numpy as np

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.types import Image
from steadyeye.degradation.operator import Context, Operator, Trail

KIND = ("deterministic", "global", "white box")
NORMS = ("linf", "l2")


def gradient_descent(step: float = 1.0, norm: str = "linf") -> Operator:
    """One step per level against the gradient of the true class's probability.

    `step`: its size in grey values of 255. `norm`: "linf", every value moves by `step` against
    the sign of its gradient; "l2", the move is along the gradient, with `step` as its root mean
    square. The image is kept as a float in 0…255 and rounded on output, ⌊x + ½⌋. Needs a
    differentiable model. Swingler 2022; the signed step is Goodfellow et al. 2015, Section 4.
    Raises `UsageError` for another norm and for a step that is not above 0.

    Example with a model whose score rises with brightness:

        >>> context = Context(np.uint64(0), gradient=np.ones_like)
        >>> image = np.full((1, 1, 3), 200, dtype=np.uint8)
        >>> gradient_descent(step=2).start(image, context)(5).tolist()
        [[[190, 190, 190]]]
    """
    if norm not in NORMS:
        raise unknown("norm", norm, NORMS)
    if step <= 0:
        raise UsageError(f"step={step}: give a step above 0, in grey values of 255")

    def begin(image: Image, context: Context) -> Trail:
        assert context.gradient is not None, "a sweep refuses models without gradients"
        gradient = context.gradient
        state = image.astype(np.float32)
        reached = 0

        def at(level: int) -> Image:
            nonlocal reached
            while reached < level:
                reached += 1
                slope = gradient(state)
                if norm == "linf":
                    move = np.sign(slope)
                else:
                    move = slope * (np.sqrt(slope.size) / max(np.linalg.norm(slope), 1e-12))
                np.clip(state - np.float32(step) * move, 0, 255, out=state)
            return np.floor(state + np.float32(0.5)).astype(np.uint8)  # type: ignore[no-any-return]

        return at

    about = f"step={step}, norm={norm}"
    return Operator("gradient_descent", begin, needs_gradient=True, about=about)
