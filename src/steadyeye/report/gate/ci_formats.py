"""Verdicts of the gate in the forms that continuous integration reads: GitHub and JUnit."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from steadyeye.report.gate.gate import HOLDS, GateVerdict

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 allows in no form."""


def github(verdict: GateVerdict) -> str:
    """The workflow command that puts a verdict on the page of a run: an error, or a notice."""
    kind = "notice" if verdict.outcome == HOLDS else "error"
    title = _property(f"{verdict.requirement} {verdict.outcome}")
    return f"::{kind} title={title}::{_data(verdict.sentence)}"


def junit(verdicts: Sequence[GateVerdict]) -> bytes:
    """A JUnit report as XML: a test case a verdict, a failure where it does not hold."""
    failed = sum(verdict.outcome != HOLDS for verdict in verdicts)
    counts = {"tests": f"{len(verdicts)}", "failures": f"{failed}", "errors": "0", "skipped": "0"}
    suites = ElementTree.Element("testsuites", {"name": "steadyeye", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "steadyeye gate", **counts})
    for verdict in verdicts:
        names = {
            "classname": _legal(f"{verdict.model} on {verdict.data}"),
            "name": _legal(verdict.requirement),
            "time": "0",
        }
        case = ElementTree.SubElement(suite, "testcase", names)
        text = _legal(f"{verdict.sentence}\n{verdict.method}")
        if verdict.outcome == HOLDS:
            ElementTree.SubElement(case, "system-out").text = text
        else:
            message = {"message": _legal(verdict.sentence), "type": verdict.outcome}
            ElementTree.SubElement(case, "failure", message).text = text
    ElementTree.indent(suites)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _legal(text: str) -> str:
    return FORBIDDEN.sub("\ufffd", text)
