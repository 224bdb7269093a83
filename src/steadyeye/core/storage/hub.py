"""Whether the Hugging Face hub answers, checked once before its files are requested.

Its library tries seven times for every file, 23 s in all, before it reports that there is no
network.
"""

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError, one_line
from steadyeye.core.storage.retry import StorageError, retry_request

TIMEOUT = 3.0
"""Seconds in which the hub must answer."""
TRIES = 2
_ANSWERED: set[str] = set()
REPOSITORY = re.compile(r"\w[\w.-]*(/[\w.-]+)?(@.+)?")
"""A possible name on the hub, with a revision after the @; anything else is a path."""


def short_name(name: str) -> str:
    """The last part of a folder's path or of a name on the hub."""
    return name.rstrip("/").rpartition("/")[2]


@contextmanager
def hub_access(name: str) -> Iterator[None]:
    """While the model `name` is read: if the hub does not answer, only its cache is used.

    No request if `name` is a path, and none with HF_HUB_OFFLINE. Raises `StorageError` if the hub
    does not answer and its cache lacks the model or a file of it.
    """
    constants = importlib.import_module("huggingface_hub.constants")
    is_path = not REPOSITORY.fullmatch(name) or Path(name).exists()
    try:
        if not (is_path or constants.HF_HUB_OFFLINE):
            check_hub(constants.ENDPOINT, f" for '{name}'")
    except StorageError:
        if not Path(constants.HF_HUB_CACHE, "models--" + name.replace("/", "--")).exists():
            raise
        with _use_cache_alone(name, constants):
            yield
    else:
        yield


@contextmanager
def _use_cache_alone(name: str, constants: Any) -> Iterator[None]:
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        raise StorageError(
            f"cannot reach {constants.ENDPOINT}, and '{name}' cannot be read from its cache "
            f"{constants.HF_HUB_CACHE} alone ({one_line(error)}); connect, or set HF_HUB_CACHE to "
            "a cache with all its files"
        ) from error
    finally:
        constants.HF_HUB_OFFLINE = False


def check_hub(endpoint: str, purpose: str = "") -> None:
    """Raises `StorageError` if `endpoint` does not answer; not repeated after an answer."""
    if endpoint in _ANSWERED:
        return
    session = importlib.import_module("huggingface_hub.utils").get_session()
    retry_request(
        lambda: session.head(endpoint, timeout=TIMEOUT), f"reach {endpoint}{purpose}", TRIES
    )
    _ANSWERED.add(endpoint)
