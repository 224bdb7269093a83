"""Where the real test data lies, and the packaged models, loaded once a session."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# what one test leaves behind is not to answer for another; those of the cache name a folder
os.environ["STEADYEYE_CACHE"] = "off"
DATA = Path(os.environ.get("STEADYEYE_TEST_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real frames, videos and metadata; skips where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no test data at {DATA}; set STEADYEYE_TEST_DATA")
    return DATA


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium; skips where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM}; install the package chromium")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield chromium
        chromium.close()
