"""The labels of a CVAT task: the tag that carries an answer, and the classes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from steadyeye.review.interchange.asked import FORMS
from steadyeye.review.protocol.stages import REASONS, list_labels

ANSWER = "steadyeye"
"""The label of the tag that carries an answer."""

NOTHING = "-"
"""The choice that a question has before anybody chose."""


def labels(stage: str, classes: Sequence[str]) -> bytes:
    """The labels of the task of a stage, JSON as the constructor of CVAT's tasks takes it."""
    return (json.dumps(_labels(stage, classes), indent=1, ensure_ascii=False) + "\n").encode()


def as_xml(stage: str, classes: Sequence[str]) -> Element:
    """The same, as in the head of CVAT's files."""
    root = Element("labels")
    for each in _labels(stage, classes):
        label = SubElement(root, "label")
        for key in ("name", "type"):
            SubElement(label, key).text = each[key]
        attributes = SubElement(label, "attributes")
        for one in each["attributes"]:
            attribute = SubElement(attributes, "attribute")
            told = {**one, "mutable": str(one["mutable"]), "values": "\n".join(one["values"])}
            for key, text in told.items():
                SubElement(attribute, key).text = text
    return root


def flags(stage: str) -> Sequence[str]:
    """The questions of a stage that are answered by a tick."""
    return REASONS if stage in ("pairs", "joint") else ()


def shape(stage: str) -> str:
    """What a class marks in a stage: the whole picture, or a box."""
    return "tag" if stage == "anchors" else "rectangle"


def _labels(stage: str, classes: Sequence[str]) -> list[Mapping[str, Any]]:
    asked = [_attribute(n, "select", (NOTHING, *words)) for n, words in FORMS[stage].items()]
    asked += [_attribute(name, "checkbox", ("false",)) for name in flags(stage)]
    asked.append(_attribute("comment", "text", ("",)))
    answer = {"name": ANSWER, "type": "tag", "attributes": asked}
    if stage in ("pairs", "joint"):
        return [answer]
    kind, names = shape(stage), list_labels(stage, classes)
    return [answer, *({"name": name, "type": kind, "attributes": []} for name in names)]


def _attribute(name: str, kind: str, values: Sequence[str]) -> Mapping[str, Any]:
    first = values[0]
    told = {"mutable": False, "input_type": kind, "default_value": first}
    return {"name": name, **told, "values": list(values)}
