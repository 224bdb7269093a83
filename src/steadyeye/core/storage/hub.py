"""Whether the Hugging Face hub answers, checked once before its files are requested.

Its library tries seven times for every file, 23 s in all, before it reports that there is no
network.
"""

import importlib
import re
from pathlib import Path

from steadyeye.core.storage.retry import retry_request

TIMEOUT = 3.0
"""Seconds in which the hub must answer."""
TRIES = 2
_ANSWERED: set[str] = set()
REPOSITORY = re.compile(r"\w[\w.-]*(/[\w.-]+)?(@.+)?")
"""A possible name on the hub, with a revision after the @; anything else is a path."""


def check_download(name: str) -> None:
    """Raises `StorageError` if the model `name` must be downloaded and the hub does not answer.

    No request if `name` is a path or a model in the hub's cache, and none offline.
    """
    if not REPOSITORY.fullmatch(name):
        return
    constants = importlib.import_module("huggingface_hub.constants")
    snapshots = Path(constants.HF_HUB_CACHE, "models--" + name.replace("/", "--"), "snapshots")
    if not (constants.HF_HUB_OFFLINE or Path(name).exists() or snapshots.exists()):
        check_hub(constants.ENDPOINT, f" for '{name}'")


def check_hub(endpoint: str, purpose: str = "") -> None:
    """Raises `StorageError` if `endpoint` does not answer; not repeated after an answer."""
    if endpoint in _ANSWERED:
        return
    session = importlib.import_module("huggingface_hub.utils").get_session()
    retry_request(
        lambda: session.head(endpoint, timeout=TIMEOUT), f"reach {endpoint}{purpose}", TRIES
    )
    _ANSWERED.add(endpoint)
