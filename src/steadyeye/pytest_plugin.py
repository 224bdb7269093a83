"""The pytest fixture `assert_steady`, available wherever steadyeye is installed."""

from collections.abc import Callable
from typing import Any

import pytest

JUDGED_BY = ("least", "premise")
"""Options of the gate, not of the run."""


@pytest.fixture(scope="session")
def assert_steady(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """`steadyeye.assertions.assert_steady`; models and data as specs run once per session.

    Runs are in the session's temporary folder, where pytest keeps those of the last sessions.
    """
    # steadyeye is imported when a test needs it, not in every session
    from steadyeye.assertions import assert_steady as check
    from steadyeye.core.seeds import fingerprint

    runs = tmp_path_factory.mktemp("steadyeye")

    def assert_steady(model: Any, data: Any, *required: str, **options: Any) -> Any:
        __tracebackhide__ = True
        if isinstance(model, str) and isinstance(data, str) and "out" not in options:
            evaluated = {key: options[key] for key in sorted(options) if key not in JUDGED_BY}
            parts = [f"{key}={value!r}" for key, value in evaluated.items()]
            options["out"] = runs / fingerprint(model, data, *parts)
        return check(model, data, *required, **options)

    assert_steady.__doc__ = check.__doc__
    return assert_steady
