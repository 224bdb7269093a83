"""Image embeddings: the features of an inner layer of a classifier."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from steadyeye.core.abilities import detects
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Classes, Image, Model, Scores
from steadyeye.models.runtimes.classifier import Classifier, count_images
from steadyeye.models.runtimes.onnx_session import OnnxSession
from steadyeye.models.runtimes.probe_images import patterns

LAST = ("Gemm", "MatMul", "Conv")


@dataclass(frozen=True, eq=False)
class Embedder:
    """A `Model` whose scores are features: (n, d) float32, one row an image, in order.

    `classes`: its dimensions by number. `recipe`: that of the classifier, with the name of `layer`.
    Images are resized to the input as a whole, without the centre crop, which would remove the
    edges of crops.
    """

    name: str
    classes: Classes
    recipe: Mapping[str, Any]
    fingerprint: str
    network: Model

    def __call__(self, images: Iterable[Image], /) -> Scores:
        """The features; (0, d) for no images."""
        return self.network(images)


def embedder(model: Model, layer: str = "") -> Embedder:
    """The features of a model: the input of its last layer, or those of `layer`.

    A classifier on ONNX Runtime or in torch is cut before its last fully connected layer (or
    convolution), or at `layer`: a tensor of the ONNX graph, a module of torch. Spatial axes are
    averaged. The features of any other callable are its output. Raises `UsageError` for detectors
    and for missing layers.
    """
    if detects(model):
        raise UsageError(f"{model.name} is a detector; embed with a classifier or a callable")
    if not isinstance(model, Classifier):
        if layer:
            raise UsageError(
                f"{model.name} is a function, whose layers cannot be read; leave out layer=…"
            )
        return _embedder(model, model, "what it returns")
    forward, name = _cut_at_layer(model, layer)
    recipe = model.settings
    settings = replace(
        recipe, preprocessing=recipe.preprocessing.without_resize(), output="probabilities"
    )
    network = replace(model, classes=None, settings=settings, forward=forward, gradient=None)
    return _embedder(model, network, name)


def _cut_at_layer(model: Classifier, layer: str) -> tuple[Any, str]:
    if isinstance(model.forward, OnnxSession):
        session, name = cut_graph(model.forward, layer)
        return _Flat(session), name
    # only here, since embedding with ONNX Runtime needs no torch
    from steadyeye.models.introspection import torch_layers

    module, name = torch_layers.cut_at_layer(model.forward, layer)
    return _Flat(module), name


def _embedder(model: Model, network: Model, layer: str) -> Embedder:
    width = network([patterns(224, 224, 1)[0]]).shape[1]
    return Embedder(
        name=f"{model.name} features",
        classes=Classes(tuple(f"feature {i}" for i in range(width))),
        recipe={**model.recipe, "layer": layer, "crop": "none: the whole image to the input"},
        fingerprint=fingerprint("features", model.fingerprint, layer),
        network=network,
    )


@dataclass(frozen=True)
class _Flat:
    """A `Forward` with one output row per image: spatial axes and tokens are averaged."""

    forward: Any

    def __call__(self, batch: NDArray[np.float32], /) -> NDArray[np.float32]:
        """(n, d) float32, from (n, d), (n, d, h, w) or (n, tokens, d)."""
        features = self.forward(batch)
        if features.ndim == 4:
            features = features.mean(axis=(2, 3))
        elif features.ndim == 3:
            features = features.mean(axis=1)
        if features.ndim != 2 or len(features) != len(batch):
            raise UsageError(
                f"the layer gives an output of shape {features.shape} for "
                f"{count_images(len(batch))}; name one that gives "
                "(n, d), (n, d, h, w) or (n, tokens, d)"
            )
        return np.asarray(features, dtype=np.float32)


def cut_graph(session: OnnxSession, layer: str = "") -> tuple[OnnxSession, str]:
    """A session that outputs an inner tensor, and the name of that tensor.

    `layer`: its name; by default the input of the last fully connected layer or convolution of the
    graph. Later nodes are not computed. Raises `UsageError` for a graph without such a layer or
    tensor.
    """
    file = session.model
    model = onnx.load(str(file)) if isinstance(file, Path) else onnx.load_from_string(file)
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
