"""Reads torch modules and weights from files without running code, and fingerprints them."""

import io
import pickle
import pickletools
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from steadyeye.core.code_permission import check_code
from steadyeye.core.errors import UsageError, one_line
from steadyeye.core.imports import attribute
from steadyeye.core.seeds import fingerprint
from steadyeye.models.runtimes.network_sizes import check_unpacked_size
from steadyeye.models.runtimes.python_function import read_fingerprint

WRAPPERS = ("state_dict", "model_state_dict", "model")
"""Keys under which training scripts store the weights."""

LIBRARIES = frozenset(
    {
        "efficientnet_lite_pytorch",
        "keras",
        "steadyeye",
        "timm",
        "torch",
        "torchvision",
        "transformers",
    }
)
"""Packages whose code is identified by their version."""


def state_dict(path: Path) -> dict[str, Tensor]:
    """The tensors in a .safetensors file or a checkpoint of `torch.save`.

    Pickled code is never run. Raises `UsageError` for a file that holds anything but tensors.
    """
    content = _safetensors(path) if path.suffix == ".safetensors" else load_content(path)
    for key in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not _tensors(content):
        raise UsageError(
            f"'{path}' holds a {type(content).__name__}, not a state dict; save model.state_dict()"
        )
    # DataParallel and DistributedDataParallel put 'module.' before every name
    return {str(key).removeprefix("module."): value for key, value in content.items()}


def load_content(path: Path) -> Any:
    """The content of a file of `torch.save`, tensors and plain containers only (`weights_only`)."""
    try:
        if zipfile.is_zipfile(path):
            check_unpacked_size(path)
            return torch.load(path, map_location="cpu", weights_only=True)
        # of older files torch reads texts as long as they say, which a mapped file bounds
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            return torch.load(content, map_location="cpu", weights_only=True)  # type: ignore[arg-type]
    except UsageError:
        raise
    except FileNotFoundError as error:
        raise UsageError(f"there is no file '{path}'; check the path") from error
    except pickle.UnpicklingError as error:
        raise UsageError(
            f"'{path}' holds pickled objects, which may run code when they are loaded; "
            "save the state dict instead: torch.save(model.state_dict(), path)"
        ) from error
    except Exception as error:
        # the reader of pickles takes what a damaged file says as it is
        raise UsageError(
            f"'{path}' is no file of torch.save, or it is cut short ({one_line(error)}); copy it "
            "again"
        ) from error


def serialise(content: Any) -> bytes:
    """The bytes of `torch.save`; the same content gives the same bytes."""
    buffer = io.BytesIO()
    torch.save(_unshare(content), buffer)
    return buffer.getvalue()


def _unshare(content: Any) -> Any:
    """A copy, except for tensors, in which equal texts are one object and no container repeats.

    Pickle writes an object that comes again as a reference to the first, so that equal content is
    other bytes where it was read from a file.
    """
    if type(content) is str:
        return sys.intern(content)
    if type(content) is dict:
        return {_unshare(key): _unshare(value) for key, value in content.items()}
    if type(content) in (list, tuple):
        return type(content)(map(_unshare, content))
    return content


def fill(module: nn.Module, path: Path) -> nn.Module:
    """`module` with the weights in `path`; every name and shape must match, otherwise `UsageError`.

    The counters of batch normalisation may be absent, as in models trained with it frozen.
    """
    return fill_from(module, state_dict(path), path)


def fill_from(module: nn.Module, weights: Mapping[str, Tensor], path: Path) -> nn.Module:
    """As `fill`, with weights under the module's names; `path`: their file, for errors.

    Raises `UsageError` as `fill` does.
    """
    try:
        missing, unexpected = module.load_state_dict(weights, strict=False)
    except Exception as error:
        # tensors of other kinds, as of layouts and quantised ones, each raise their own
        misfit = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
        raise UsageError(
            f"'{path}' does not fit {type(module).__name__}: {misfit}; give the weights of this "
            "network"
        ) from error
    # they count the batches of training, and nothing reads them afterwards
    missing = [name for name in missing if not name.endswith(".num_batches_tracked")]
    for fault, names in (("lacks", missing), ("has no place for", unexpected)):
        if names:
            who = f"'{path}'" if fault == "lacks" else type(module).__name__
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise UsageError(
                f"'{path}' does not fit: {who} {fault} '{names[0]}'{more}; give the weights of "
                "this network"
            )
    return module


FORMER = {
    "steadyeye.models.backends.hf": "steadyeye.models.hf",
    "steadyeye.models.backends.keras": "steadyeye.models.keras",
    "steadyeye.models.introspection.multilabel_head": "steadyeye.inference.independent",
}
"""Our moved modules → their names in fingerprints of earlier runs."""


def architecture(module: nn.Module) -> str:
    """The class, layers and (for scripted or exported modules) code, without memory addresses."""
    code = getattr(module, "code", "")
    own = type(module).__module__
    text = f"{FORMER.get(own, own)}.{type(module).__qualname__} {module!r} {code}"
    return re.sub(r"0x[0-9a-f]+", "", text)


def weights_fingerprint(module: nn.Module) -> str:
    """A digest of the architecture and of every parameter and buffer."""
    # named_buffers has those that state_dict leaves out, such as position indices
    parts = {**dict(module.named_buffers()), **module.state_dict()}
    digests = (fingerprint(name, _bytes(parts[name])) for name in sorted(parts))
    own = read_fingerprint(module)
    return fingerprint(architecture(module), *digests, *([own] if own else []))


def is_covered(module: nn.Module) -> bool:
    """Whether the fingerprint of the weights, with the versions of the libraries, covers the code.

    The code of a user's own classes is not covered, unless the module declares a `fingerprint`.
    """
    packages = {type(part).__module__.partition(".")[0] for part in module.modules()}
    return read_fingerprint(module) is not None or packages <= LIBRARIES


def _tensors(content: Mapping[Any, Any]) -> bool:
    return bool(content) and all(isinstance(value, Tensor) for value in content.values())


def _safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise UsageError(f"there is no file '{path}'; check the path") from error
    except SafetensorError as error:
        raise UsageError(f"'{path}' is no safetensors file: {error}; copy it again") from error


def _bytes(value: Any) -> bytes:
    if not isinstance(value, Tensor) or value.is_quantized:
        return repr(value).encode()
    flat = value.detach().cpu().contiguous().reshape(-1)
    kind = f"{value.dtype} {tuple(value.shape)} ".encode()
    return kind + flat.view(torch.uint8).numpy().tobytes()


def load_module(path: str, allow_pickle: bool = False) -> nn.Module:
    """The eval-mode module at `path`: `py:package.module:factory`, TorchScript, .pt2 or a pickle.

    The kind of a file is detected from its content. Raises `UsageError` for a state dict (it has no
    architecture) and for a pickled module or a .pt2 file without `allow_pickle`.
    """
    if path.startswith("py:"):
        return _build_module(path.removeprefix("py:"))
    file = Path(path).expanduser()
    if not file.is_file():
        raise UsageError(f"there is no model file '{path}'; check the path")
    entries = _entries(file)
    if any("/code/" in entry for entry in entries):
        with _explain_damage(file):
            check_pickles(file)
            scripted: nn.Module = torch.jit.load(file, "cpu")  # type: ignore[no-untyped-call]
            return scripted.eval()
    if any(entry.endswith(("/archive_format", "/models/model.json")) for entry in entries):
        _check_pickle(file, allow_pickle, "torch reads a .pt2 file with pickle and eval")
        with _explain_damage(file):
            # an exported program is frozen as it was exported: it has no eval()
            return torch.export.load(file).module()
    return _load_pickled(file, allow_pickle)


@contextmanager
def _explain_damage(file: Path) -> Iterator[None]:
    """A block in which torch reads a file; errors for damaged files become `UsageError`."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"cannot load the model file '{file}': {one_line(error)}; save it again with this "
            "version of torch, or copy it again"
        ) from error


def _check_pickle(file: Path, allowed: bool, why: str = "") -> None:
    """Raises `UsageError` unless the user allows the file to run code."""
    if not allowed:
        raise UsageError(
            f"'{file}' may run code when it is loaded ({why}); add "
            "allow_pickle=True if you trust it"
        )
    check_code(str(file))


def _build_module(path: str) -> nn.Module:
    target = attribute(path)
    try:
        built = target if isinstance(target, nn.Module) else target()
    except TypeError as error:
        if error.__traceback__ and error.__traceback__.tb_next:
            raise  # of the function itself
        raise UsageError(
            f"'{path}' cannot be called: {one_line(error)}; name a function without arguments that "
            "returns a torch.nn.Module"
        ) from error
    if not isinstance(built, nn.Module):
        raise UsageError(
            f"'{path}' gives a {type(built).__name__}, not a torch.nn.Module; name a function that "
            "returns one"
        )
    return built.eval()


def _entries(file: Path) -> list[str]:
    if not zipfile.is_zipfile(file):
        return []
    with _explain_damage(file), zipfile.ZipFile(file) as archive:
        check_unpacked_size(file)
        return archive.namelist()


def _load_pickled(file: Path, allow_pickle: bool) -> nn.Module:
    if allow_pickle:
        _check_pickle(file, allow_pickle)
        content = torch.load(file, map_location="cpu", weights_only=False)
        if isinstance(content, nn.Module):
            return content.eval()
        raise UsageError(
            f"'{file}' holds a {type(content).__name__}, not a torch.nn.Module; save the model"
        )
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


SUFFIXES = (".pkl", ".debug_pkl")
TABLE = "FORMAT_WITH_STRING_TABLE"
INTEGERS = ("torch.jit._pickle", "build_intlist")
LARGEST = 2**63


def check_pickles(file: Path) -> None:
    """Raises `ValueError` for pickles of an archive that would crash torch's reader.

    A pickle that numbers an object beyond its own length makes the reader allocate a table of that
    size. Source ranges (`.debug_pkl`) with other content are read without a check.
    """
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if not entry.filename.endswith(SUFFIXES):
                continue
            # texts of source ranges repeat, and are packed
            if entry.file_size > max(16 * file.stat().st_size, 2**20):
                raise ValueError(f"{entry.filename} is larger than the file")
            content = archive.read(entry)
            for operation, argument, _ in pickletools.genops(content):
                if operation.name.endswith("PUT") and int(argument or 0) > len(content):
                    raise ValueError(f"{entry.filename} numbers an object {argument}")
            if entry.filename.endswith(".debug_pkl") and not _are_ranges(content):
                raise ValueError(f"{entry.filename} holds no source ranges")


class _Plain(pickle.Unpickler):
    """Reads numbers, texts, tuples and lists of integers; no class can be named."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) != INTEGERS:
            raise ValueError(f"it names {module}.{name}")
        return list


def _are_ranges(content: bytes) -> bool:
    """Whether a pickle holds source ranges, with a table of texts or, in old files, without."""
    ranges = _Plain(io.BytesIO(content)).load()
    if not isinstance(ranges, tuple):
        return False
    if ranges[:1] != (TABLE,):
        return all(_is_range(record, None) for record in ranges)
    texts, records = ranges[1:] if len(ranges) == 3 else (None, None)
    return (
        isinstance(texts, tuple)
        and all(isinstance(text, str) for text in texts)
        and isinstance(records, tuple)
        and all(_is_range(record, len(texts)) for record in records)
    )


def _is_range(record: Any, texts: int | None) -> bool:
    """Whether a record is (offset, ((lines, file, first line), start, end), tag).

    `texts`: how many there are in the table that lines and file are places in; None: they are
    texts themselves, and there may be no tag.
    """
    try:
        offset, ((lines, file, first), start, end), *tag = record
    except (TypeError, ValueError):
        return False
    numbers = (offset, first, start, end, *tag)
    if len(tag) > 1 or not all(map(_is_integer, numbers)) or not 0 <= start <= end:
        return False
    if texts is None:
        return isinstance(lines, str) and isinstance(file, str | None)
    return isinstance(lines, list) and all(
        _is_integer(place) and 0 <= place < texts for place in (file, *lines)
    )


def _is_integer(value: Any) -> bool:
    return type(value) is int and -LARGEST <= value < LARGEST
