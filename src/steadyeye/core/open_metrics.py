"""The text format of OpenMetrics 1.0, which Prometheus reads."""

from collections.abc import Iterable, Mapping

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Sample = tuple[str, Mapping[str, str], float | None]
"""The suffix of a metric's name, labels, and a value; None: no value and no line."""

Family = tuple[str, str, str, Iterable[Sample]]
"""A name, a type, a help text, and its samples."""


def write_families(families: Iterable[Family]) -> str:
    r"""The text of families of metrics; those without a value are left out.

    Example:
        >>> families = [("images", "counter", "Images.", [("_total", {"kind": "a"}, 3)])]
        >>> print(write_families(families), end="")
        # TYPE images counter
        # HELP images Images.
        images_total{kind="a"} 3
        # EOF

    """
    lines = [line for family in families for line in _write_family(*family)]
    return "\n".join([*lines, "# EOF", ""])


def _write_family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> list[str]:
    lines = []
    for end, labels, value in samples:
        if value is not None:
            pairs = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
            lines.append(
                f"{name}{end}{{{pairs}}} {value:.10g}" if pairs else f"{name}{end} {value:.10g}"
            )
    return [f"# TYPE {name} {kind}", f"# HELP {name} {_escape(about)}", *lines] if lines else []


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
