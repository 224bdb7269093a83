"""The report of an explanation: what the detector is confidently wrong about, and why."""

from dataclasses import replace

from steadyeye.explain.run import Explained
from steadyeye.report import build
from steadyeye.report.render.document import Document

FIRST = ("confident_mistakes", "confusion_pairs")
"""The analyses that a report of explanations begins with: what is to be explained."""


def document(explained: Explained) -> Document:
    """The report of an explanation, from its sealed predictions.

    What the detector is confidently wrong about comes first, whatever else was asked.
    """
    runs = [explained.out]
    rest = [name for name in explained.analyses if name not in FIRST]
    analyses = (*(f"{name}(score={explained.score!r})" for name in FIRST), *rest)
    told = build.build_report(runs, explained.evaluated, analyses)
    return replace(told, title="Explanation of confident mistakes", headline=explained.headline)


def report(explained: Explained) -> Document:
    """Writes report.html and its pictures into the folder of an explanation; returns it."""
    content = document(explained)
    build.store_pictures(explained.out, explained.sources, content)
    build.save(content, [explained.out], [explained.out / "report.html"])
    return content
