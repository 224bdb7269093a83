"""Where the real test data lies, and the packaged models, loaded once a session."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("STEADYEYE_TEST_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real frames, videos and metadata; skips where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no test data at {DATA}; set STEADYEYE_TEST_DATA")
    return DATA
