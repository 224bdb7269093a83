"""Finding a result among those of a cell."""

from collections.abc import Mapping

from steadyeye.core.types import Result


def find(results: Mapping[str, Result], name: str) -> Result | None:
    """The result of a metric, whatever its parameters (`pm_k` finds `pm_k(k=10)`), or None."""
    for key, result in results.items():
        if key == name or key.startswith(f"{name}("):
            return result
    return None


def reach(result: Result) -> int:
    """The k of a `pm_k` or `drop` result, in native frames."""
    return int(result.name.partition("k=")[2].rstrip(")") or 0)
