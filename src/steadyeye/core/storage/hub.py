"""Whether the Hugging Face hub answers, asked once before its files are.

Its library asks for every file seven times, 23 s in all, before it says that there is no network.
"""

import importlib
import re
from pathlib import Path

from steadyeye.core.storage.retry import retry_request

TIMEOUT = 3.0
"""Seconds in which the hub has to answer."""
TRIES = 2
_ANSWERED: set[str] = set()
REPOSITORY = re.compile(r"\w[\w.-]*(/[\w.-]+)?(@.+)?")
"""What can be a name on the hub, its revision after the @; anything else is a path."""


def check_download(name: str) -> None:
    """Raises `StorageError` where the model `name` has to be downloaded and the hub is away.

    Nothing is asked where `name` is a path, or of a model in the hub's cache, and offline.
    """
    if not REPOSITORY.fullmatch(name):
        return
    constants = importlib.import_module("huggingface_hub.constants")
    snapshots = Path(constants.HF_HUB_CACHE, "models--" + name.replace("/", "--"), "snapshots")
    if not (constants.HF_HUB_OFFLINE or Path(name).exists() or snapshots.exists()):
        check_hub(constants.ENDPOINT, f" for '{name}'")


def check_hub(endpoint: str, purpose: str = "") -> None:
    """Raises `StorageError` where nothing answers at `endpoint`; asked until there is an answer."""
    if endpoint in _ANSWERED:
        return
    session = importlib.import_module("huggingface_hub.utils").get_session()
    retry_request(
        lambda: session.head(endpoint, timeout=TIMEOUT), f"reach {endpoint}{purpose}", TRIES
    )
    _ANSWERED.add(endpoint)
