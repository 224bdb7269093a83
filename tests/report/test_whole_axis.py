"""The axis of whole numbers, as Vega draws it."""

import re

import pytest
import vl_convert

from steadyeye.report.charts.specs import SIGNED, WHOLE, chart


@pytest.mark.parametrize(
    ("axis", "first", "last"),
    [(WHOLE, 0, 1), (WHOLE, 0, 2), (WHOLE, 1, 3), (WHOLE, 0, 10), (SIGNED, -1, 1), (SIGNED, -3, 3)],
)
def test_an_axis_of_whole_numbers_has_no_number_twice(axis, first, last):
    rows = [{"d": first, "v": 0}, {"d": last, "v": 1}]
    x = {"field": "d", "type": "quantitative", "axis": axis, "scale": {"domain": [first, last]}}
    y = {"field": "v", "type": "quantitative", "axis": None}
    layer = {"data": {"values": rows}, "mark": "point", "encoding": {"x": x, "y": y}}
    svg = vl_convert.vegalite_to_svg({**chart([layer]), "width": 600})
    texts = re.findall(r"<text[^>]*>([+−-]?\d+)</text>", svg)
    labels = [int(text.replace("−", "-")) for text in texts]
    assert labels == sorted(set(labels))
    assert {first, last} <= set(labels)
