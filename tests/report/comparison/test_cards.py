"""Cards of models: every text fits, and the saved picture is that of the page."""

import io
import re
from xml.etree import ElementTree as ET

import numpy as np
import page_checks
import pytest
from PIL import Image

from steadyeye.report.leaderboard_files import (
    ROWS,
    Card,
    CardRow,
    fit_size,
    render_card,
    render_picture,
)

GROUND = "#f4f6f8"
"""The colour of a card's page, which shows at the card's round corners."""


def build_card(model="resnet <b>", data="bikes", rows=2, bar=(0.25, 0.05, 0.57)):
    """A card with as many equal rows."""
    row = CardRow(data, "pm-10", "25.0 %", "(5.5–57.2 %), n = 12, 20 classes", "1=", 3, bar)
    title = f"{model}: pm-10 25.0 % on {data}"
    return Card(model, title, "2 data sets", (row,) * rows, "Rank: 1 + others", "2026-01-02")


def write_card(folder, card, name="card"):
    """Writes the page of a card; returns its address."""
    path = folder / f"{name}.html"
    path.write_text(render_card(card, render_picture(card), name), encoding="utf-8")
    return path.as_uri()


def test_a_size_is_never_above_the_largest_and_falls_with_the_length():
    sizes = [fit_size("n" * length, 34, 728) for length in range(200)]
    assert sizes[:20] == [34] * 20
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 6


def test_a_row_without_a_share_has_no_bar():
    picture = ET.fromstring(render_picture(build_card(bar=None)))
    rows = ET.fromstring(render_picture(build_card()))
    shapes = [[e.tag.rpartition("}")[2] for e in root] for root in (picture, rows)]
    assert shapes[0].count("circle") == 0
    assert shapes[1].count("circle") == 2
    assert shapes[1].count("rect") - shapes[0].count("rect") == 4


def test_a_name_with_characters_that_xml_forbids_is_a_picture_too():
    picture = render_picture(build_card(model="net\x01 \x1b[31m\ufffe\ud800 é😀"))
    assert "net\ufffd \ufffd[31m\ufffd\ufffd é😀" in {
        text.text for text in ET.fromstring(picture).iter()
    }
    assert picture.encode()


def test_the_page_runs_no_script_but_its_own_and_asks_no_network():
    card = build_card("</script><script>alert(1)</script>")
    page = render_card(card, render_picture(card), "card")
    assert page.count("<script") == 1
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    sources = {word for part in policy.split(";") for word in part.split()[1:]}
    assert sources == {"'none'", "data:", "'unsafe-inline'"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "RESNET50_WITH_MIXUP_AND_CUTMIX_AND_AUGMIX_AND_RANDAUGMENT",
        "mwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmwmw",
        "稳健性模型的一个很长的名字" * 4,
    ],
)
def test_long_names_stay_within_the_card_and_clear_of_the_rank(windows, tmp_path, name):
    page = windows.open(write_card(tmp_path, build_card(name, name)), offline=True).page
    boxes = page.evaluate(
        "[...document.querySelectorAll('svg text')].map((one) => { const b = one.getBBox();"
        " return [one.textContent, b.x, b.y, b.x + b.width, b.y + b.height]; })"
    )
    assert len(boxes) == 4 + 4 * 2
    for i, (text, left, top, right, bottom) in enumerate(boxes):
        assert 0 <= left < right <= 780, text
        for other, *box in boxes[:i]:
            apart = box[2] <= left or right <= box[0] or box[3] <= top or bottom <= box[1]
            touching = min(bottom, box[3]) - max(top, box[1]) < 4
            assert apart or touching, (text, other)


def save_by_key(page):
    """The picture that the button saves, pressed by key, as PIL reads it."""
    button = page.get_by_role("button", name="Save as PNG")
    page.keyboard.press("Tab")
    assert button.evaluate("(one) => one === document.activeElement")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    image = Image.open(download.value.path())
    image.load()
    return download.value.suggested_filename, image


def take_screenshot(page):
    """A screenshot of the card, moved to whole pixels, at twice its size."""
    style = "main svg { position: fixed; inset: 0 auto auto 0; width: 800px; }"
    page.add_style_tag(content=style)
    return Image.open(io.BytesIO(page.locator("main svg").screenshot())).convert("RGB")


def compare(first, second):
    """(mean, largest) difference in 0…255 of two pictures of a size, in squares of 4 pixels.

    An edge that lies a pixel further, as letters may, is less than half of the largest difference.
    """
    small, other = (np.asarray(image.reduce(4), int) for image in (first, second))
    apart = np.abs(small - other).max(axis=2)
    return apart.mean(), apart.max()


@pytest.mark.slow
def test_the_saved_picture_is_the_card_at_twice_its_size(windows, tmp_path):
    pictures, screenshots = [], []
    for rows, model in ((2, "resnet <b>"), (ROWS, "résumé & 模型"), (2, "another")):
        address = write_card(tmp_path, build_card(model, rows=rows), f"card-{rows}")
        window = windows.open(address, offline=True, device_scale_factor=2)
        name, image = save_by_key(window.page)
        assert name == f"card-{rows}.png"
        assert (image.format, image.size) == ("PNG", (1600, 2 * (178 + 104 * rows)))
        corners = np.asarray(image.convert("RGBA"))[[0, 0, -1, -1], [0, -1, 0, -1], 3]
        assert not corners.any()
        on_page = Image.new("RGB", image.size, GROUND)
        on_page.paste(image, mask=image.convert("RGBA").getchannel("A"))
        pictures.append(on_page)
        screenshots.append(take_screenshot(window.page))
        mean, largest = compare(on_page, screenshots[-1])
        assert mean < 1, model
        assert largest < 120, model
        assert page_checks.find_faults(window) == []
    # what is told apart: a name, and the font of the texts
    mean, largest = compare(pictures[0], screenshots[2])
    assert mean > 1
    assert largest > 200
    window = windows.open(address, offline=True, device_scale_factor=2)
    window.page.add_style_tag(content="main svg { font-family: serif }")
    assert compare(pictures[2], take_screenshot(window.page))[0] > 2


@pytest.mark.slow
def test_a_phone_saves_the_same_size(windows, tmp_path):
    address = write_card(tmp_path, build_card())
    phone = windows.open(
        address, page_checks.LOOKS[0], offline=True, device_scale_factor=3, has_touch=True
    )
    assert save_by_key(phone.page)[1].size == (1600, 2 * (178 + 104 * 2))


@pytest.mark.slow
def test_without_scripts_there_is_no_button(windows, tmp_path):
    address = write_card(tmp_path, build_card())
    page = windows.open(address, java_script_enabled=False, alone=True).page
    assert page.locator("button").count() == 1
    assert not page.locator("button").is_visible()
    assert page.get_by_role("link", name="This card as a picture (SVG)").is_visible()
