"""Exports checked by the packages of Label Studio and CVAT, if these are installed.

Label Studio's is large: `tools/check_interchange.py` runs it, and datumaro, in separate
environments.
"""

import sys

import pytest
from conftest import ROOT
from review_exports import export_everything

sys.path.insert(0, str(ROOT / "tools"))
import check_interchange

# tool → its package, a file to spoil, and what in it for what
SPOILED = {
    "label_studio": ("label_studio_sdk", "boxes.results.json", '"cat"', '"cow"'),
    "cvat": ("cvat_sdk", "classification/results/r0.xml", "yes</attr", "maybe</attr"),
    "datumaro": ("datumaro", "boxes/results/r0.xml", "<tag ", "<tagged "),
}


@pytest.mark.slow
@pytest.mark.parametrize("tool", SPOILED)
def test_tools_accept_what_is_exported_for_them_and_refuse_what_is_spoiled(tool, tmp_path):
    package, name, right, wrong = SPOILED[tool]
    pytest.importorskip(package, reason=f"{check_interchange.TOOLS[tool]} is not installed")
    check = check_interchange.CHECKS[tool]
    exports = [folder / tool.replace("datumaro", "cvat") for folder in export_everything(tmp_path)]
    for folder in exports:
        assert max(check(folder).values()) > 0
    file = exports[1] / name
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong))
    with pytest.raises(ValueError, match=r"cow|maybe|datumaro reads"):
        check(exports[1])
