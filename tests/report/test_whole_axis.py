"""The axis of whole numbers, as Vega draws it."""

import re

import pytest
import vl_convert

from steadyeye.report.charts.specs import WHOLE, chart


@pytest.mark.parametrize(("first", "last"), [(0, 1), (0, 2), (1, 3), (0, 10)])
def test_an_axis_of_whole_numbers_has_no_number_twice(first, last):
    rows = [{"d": first, "v": 0}, {"d": last, "v": 1}]
    x = {"field": "d", "type": "quantitative", "axis": WHOLE, "scale": {"domain": [first, last]}}
    y = {"field": "v", "type": "quantitative", "axis": None}
    layer = {"data": {"values": rows}, "mark": "point", "encoding": {"x": x, "y": y}}
    svg = vl_convert.vegalite_to_svg({**chart([layer]), "width": 600})
    labels = [int(text) for text in re.findall(r"<text[^>]*>(\d+)</text>", svg)]
    assert labels == sorted(set(labels))
    assert {first, last} <= set(labels)
