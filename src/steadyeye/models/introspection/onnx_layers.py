"""Inner tensors of ONNX models, let out as their output."""

from pathlib import Path

import onnx

from steadyeye.core.errors import UsageError, unknown
from steadyeye.models.runtimes.onnx_session import OnnxSession

LAST = ("Gemm", "MatMul", "Conv")


def cut_at_layer(session: OnnxSession, layer: str = "") -> tuple[OnnxSession, str]:
    """A session that gives an inner tensor, and the name of that tensor.

    `layer`: its name; by default what the last fully connected layer or convolution of the graph
    reads. What comes after it is not computed. Raises `UsageError` for a graph without such a
    layer and a tensor that is not in it.
    """
    model = _load_graph(session)
    weights = {tensor.name for tensor in model.graph.initializer}
    name = layer or _read_last(model, weights, session.name)
    outputs = [output for node in model.graph.node for output in node.output]
    if name not in outputs:
        raise unknown(f"tensor of {session.name}", name, outputs)
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    return OnnxSession(
        model.SerializeToString(), f"{session.name} up to {name}", session.runtime
    ), name


def _load_graph(session: OnnxSession) -> onnx.ModelProto:
    if isinstance(session.model, Path):
        return onnx.load(str(session.model))
    return onnx.load_from_string(session.model)


def _read_last(model: onnx.ModelProto, weights: set[str], called: str) -> str:
    constant = weights | {
        output
        for node in model.graph.node
        if node.op_type == "Constant" or (node.input and weights >= set(node.input))
        for output in node.output
    }
    for node in reversed(model.graph.node):
        if node.op_type in LAST:
            # of x @ W and W @ x, the one that is no weight
            read = [tensor for tensor in node.input[:2] if tensor not in constant]
            if len(read) == 1:
                return str(read[0])
    raise UsageError(
        f"'{called}' has no layer with weights of its own ({', '.join(LAST)}); "
        "name a tensor with layer="
    )
