"""The build's own step: the script that draws charts is bundled into the package."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class VegaBundle(BuildHookInterface):  # type: ignore[type-arg, misc]
    """Writes `src/steadyeye/report/render/static/vega.js`, of wheels and of editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Writes the file unless it says the same already: builds may run beside each other."""
        # by its path: the package is not installed where it is built
        module = runpy.run_path(str(Path(self.root, "src/steadyeye/report/render/vega.py")))
        file, script = module["FILE"], module["bundle_vega"]()
        if file.is_file() and file.read_text(encoding="utf-8") == script:
            return
        partial = file.with_suffix(".partial")
        partial.write_text(script, encoding="utf-8")
        partial.replace(file)
