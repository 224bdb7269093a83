"""The state of a watch in the text format of OpenMetrics 1.0, which Prometheus reads."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
FRAMES = ("received", "processed", "left_out", "thinned", "damaged", "failed")
Sample = tuple[str, Mapping[str, str], float | None]
"""The end of a name, labels, and a value; None: there is none, and no line."""


def write_metrics(state: Mapping[str, Any]) -> str:
    """The text of what `Watch.describe` gives."""
    counts = state["counts"]
    up = not state["ended"] and state["status"] in ("connected", "waiting for files")
    up |= state["status"].startswith("reading")
    families: list[tuple[str, str, str, Iterable[Sample]]] = [
        (
            "steadyeye_watch",
            "info",
            "What is watched.",
            [("_info", {"source": state["source"], "model": state["model"]}, 1)],
        ),
        ("steadyeye_up", "gauge", "1 while frames can come.", [("", {}, int(up))]),
        (
            "steadyeye_frames",
            "counter",
            "Frames by what became of them.",
            [("_total", {"state": name}, counts[name]) for name in FRAMES],
        ),
        ("steadyeye_frame_rate", "gauge", "Frames a second.", [("", {}, state["rate"])]),
        (
            "steadyeye_streams_lost",
            "counter",
            "How often the stream was lost.",
            [("_total", {}, counts["lost_streams"])],
        ),
        (
            "steadyeye_down_seconds",
            "counter",
            "Seconds until a lost stream was back.",
            [("_total", {}, counts["seconds_down"])],
        ),
        *_measures(state["measures"]),
        *_promises(state["promises"]),
        (
            "steadyeye_stored_frames",
            "gauge",
            "Frames on disk that broke a promise.",
            [("", {}, state["frames"]["number"])],
        ),
        (
            "steadyeye_stored_bytes",
            "gauge",
            "Bytes of these.",
            [("", {}, state["frames"]["bytes"])],
        ),
        (
            "steadyeye_webhook_posts",
            "counter",
            "Events posted, by whether they arrived.",
            [("_total", {"state": name}, state["webhooks"][name]) for name in ("sent", "failed")],
        ),
    ]
    lines = [line for family in families for line in _write_family(*family)]
    return "\n".join([*lines, "# EOF", ""])


def _measures(measures: Mapping[str, Any]) -> list[tuple[str, str, str, Iterable[Sample]]]:
    """A gauge each for the value, its bounds and its blocks."""
    about = {
        "value": "Mean of the blocks, 0 to 1.",
        "low": "Lower 95 % bound, which holds at any time.",
        "high": "Upper 95 % bound, which holds at any time.",
        "n": "Blocks.",
    }
    names = {"value": "steadyeye_measure", "n": "steadyeye_measure_blocks"}
    return [
        (
            names.get(part, f"steadyeye_measure_{part}"),
            "gauge",
            text,
            [
                ("", {"measure": name, "over": over}, measure[over][part])
                for name, measure in measures.items()
                for over in ("period", "total")
            ],
        )
        for part, text in about.items()
    ]


def _promises(
    promises: Sequence[Mapping[str, Any]],
) -> list[tuple[str, str, str, Iterable[Sample]]]:
    parts = (
        ("steadyeye_promise_broken", "gauge", "1 while it is broken.", "", "is_broken"),
        ("steadyeye_alerts", "counter", "How often it was broken.", "_total", "broken"),
        ("steadyeye_evidence", "gauge", "Share of what it takes to change.", "", "evidence"),
    )
    return [
        (
            name,
            kind,
            text,
            [(end, {"promise": entry["promise"]}, float(entry[key])) for entry in promises],
        )
        for name, kind, text, end, key in parts
    ]


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
