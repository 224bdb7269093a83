"""Connections to stores, one a process and kind of store."""

import importlib
import os
from functools import cache
from typing import Any

from steadyeye.core.errors import unknown
from steadyeye.core.plugins import not_installed

PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "hf": "huggingface_hub"}
"""Scheme → the package that speaks it."""

OPTIONS: dict[str, dict[str, Any]] = {
    # one layer of retries: ours; and an object read in one request, not looked up before
    "s3": {"config_kwargs": {"retries": {"total_max_attempts": 1}}, "max_concurrency": 1},
}


def filesystem(url: str) -> Any:
    """The fsspec file system of a URL; credentials and endpoint come from the environment.

    Raises `UsageError` for a scheme that is not known and for a package that is not installed.
    """
    scheme = url.partition("://")[0]
    if scheme not in PACKAGES:
        raise unknown("kind of storage", scheme, (*PACKAGES, "file"))
    # an fsspec connection does not survive a fork
    return _connect(scheme, os.getpid())


@cache
def _connect(scheme: str, process: int) -> Any:
    try:
        importlib.import_module(PACKAGES[scheme])
        import fsspec
    except ModuleNotFoundError as error:
        raise not_installed(f"{scheme}://", error) from error
    options = OPTIONS.get(scheme, {})
    store = fsspec.filesystem(scheme, use_listings_cache=False, **options)
    store.retries = 1
    return store
