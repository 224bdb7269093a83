"""Torch modules from files: TorchScript, torch.export, and pickles where they are asked for."""

import zipfile
from pathlib import Path

import torch
from torch import nn

from steadyeye.core.errors import UsageError
from steadyeye.core.imports import attribute
from steadyeye.models.runtimes.weights import state_dict


def module(path: str, allow_pickle: bool = False) -> nn.Module:
    """The eval-mode module at `path`: `py:package.module:factory`, TorchScript, .pt2 or a pickle.

    The kind of a file is told by its content. Raises `UsageError` for a state dict (it has no
    architecture) and for a pickled module without `allow_pickle`.
    """
    if path.startswith("py:"):
        return _build_module(path.removeprefix("py:"))
    file = Path(path).expanduser()
    if not file.is_file():
        raise UsageError(f"there is no model file '{path}'")
    entries = _entries(file)
    try:
        if any("/code/" in entry for entry in entries):
            scripted: nn.Module = torch.jit.load(file, "cpu")  # type: ignore[no-untyped-call]
            return scripted.eval()
        if any(entry.endswith(("/archive_format", "/models/model.json")) for entry in entries):
            # an exported program is frozen as it was exported: it has no eval()
            return torch.export.load(file).module()
    except RuntimeError as error:
        line = str(error).strip().splitlines()[0][:200]
        raise UsageError(f"cannot load the model file '{path}': {line}") from error
    return _load_pickled(file, allow_pickle)


def _build_module(path: str) -> nn.Module:
    target = attribute(path)
    built = target if isinstance(target, nn.Module) else target()
    if not isinstance(built, nn.Module):
        raise UsageError(f"'{path}' gives a {type(built).__name__}, not a torch.nn.Module")
    return built.eval()


def _entries(file: Path) -> list[str]:
    if not zipfile.is_zipfile(file):
        return []
    with zipfile.ZipFile(file) as archive:
        return archive.namelist()


def _load_pickled(file: Path, allow_pickle: bool) -> nn.Module:
    if allow_pickle:
        # the user said so: unpickling runs code from the file
        content = torch.load(file, map_location="cpu", weights_only=False)
        if isinstance(content, nn.Module):
            return content.eval()
        raise UsageError(f"'{file}' holds a {type(content).__name__}, not a torch.nn.Module")
    try:
        state_dict(file)
    except UsageError as error:
        raise UsageError(
            f"'{file}' is neither TorchScript nor .pt2, and a pickled module may run code when it "
            "is loaded; add allow_pickle=True if you trust it"
        ) from error
    raise UsageError(
        f"'{file}' holds weights without an architecture; "
        f"write path='py:package.module:factory', checkpoint='{file}'"
    )
