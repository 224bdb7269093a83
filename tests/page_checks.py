"""What is wrong with a page in a browser: cut or empty parts, requests, complaints, violations."""

from dataclasses import dataclass
from pathlib import Path

from axe_playwright_python.base import AXE_SCRIPT
from conftest import PATIENCE

HEIGHT = 900
# A4 without Chromium's own margins, at 96 dots an inch
PAPER = 718

FIND = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Look:
    """How a page is opened: `width` in pixels, `theme` "light" or "dark"."""

    width: int
    theme: str


LOOKS = tuple(Look(width, theme) for width in (390, 1280) for theme in ("light", "dark"))


@dataclass
class Opened:
    """A page in a browser; `requests`: all that it asked for, `complaints`: its errors."""

    page: object
    requests: list[str]
    complaints: list[str]


def open_page(browser, address, look, **how):
    """The page at an address, drawn; close its `page.context` at the end."""
    context = browser.new_context(
        viewport={"width": look.width, "height": HEIGHT},
        color_scheme=look.theme,
        reduced_motion="reduce",
        # axe is put into the page, which the policy of some pages does not allow
        bypass_csp=True,
        **how,
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    opened = Opened(page, [], [])
    page.on("console", lambda message: opened.complaints.append(message.text))
    page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    page.on("request", lambda asked: opened.requests.append(asked.url))
    page.goto(address)
    wait_drawn(page)
    return opened


def wait_drawn(page):
    """Waits until every chart of a report is drawn and every picture decoded."""
    charts = "document.querySelectorAll('figure.chart').length"
    page.wait_for_function(f"!{charts} || +document.documentElement.dataset.drawn === {charts}")
    page.evaluate("Promise.all([...document.images].map((one) => one.decode().catch(() => 0)))")


def unfold(page):
    """Unfolds everything, so that what is folded away is looked at too."""
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


def find_faults(opened):
    """What is cut, empty, asked of a network or complained of on an open page, a line each."""
    own = opened.page.url.partition("#")[0]
    asked = {
        url for url in opened.requests if url != own and not url.startswith(("data:", "blob:"))
    }
    return [
        *(f"asks for {url}" for url in sorted(asked)),
        *(f"complains: {text}" for text in dict.fromkeys(opened.complaints)),
        *dict.fromkeys(opened.page.evaluate(FIND)),
    ]


def find_violations(page):
    """axe-core's violations on an open page, a line for each of their elements."""
    page.evaluate(AXE_SCRIPT)
    asked = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": True}}}
    answer = page.evaluate("(asked) => axe.run(document, asked)", asked)
    return [
        f"axe {each['id']} ({each['impact']}): {' '.join(map(str, node['target']))}"
        for each in answer["violations"]
        for node in each["nodes"]
    ]


def find_print_faults(opened):
    """What is cut on paper."""
    page = opened.page
    page.set_viewport_size({"width": PAPER, "height": HEIGHT})
    page.emulate_media(media="print")
    # charts are drawn anew for another width
    page.wait_for_timeout(500)
    wait_drawn(page)
    found = [f"in print: {line}" for line in page.evaluate(FIND)]
    page.emulate_media(media="screen")
    return found
