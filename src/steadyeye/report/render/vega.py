"""Vega, the script that draws the charts of a page.

The build of the package writes it to `static/vega.js` (`hatch_build.py`), so that nobody needs
vl-convert (88 MB, and more than a second to bundle the script) to read or write a report.
"""

from functools import cache
from pathlib import Path

FILE = Path(__file__).resolve().parent / "static" / "vega.js"


@cache
def read_vega() -> str:
    """The script, safe inside a `script` element; it defines `window.vegaEmbed`.

    A checkout that was never built has no such file: there vl-convert, of the extra `test`, bundles
    the same text. Raises `UsageError` if neither exists.
    """
    if FILE.is_file():
        return FILE.read_text(encoding="utf-8")
    try:
        return bundle_vega()
    except ModuleNotFoundError as error:
        # here, since the build loads this file without the package around it
        from steadyeye.core.errors import UsageError

        problem = "this checkout was never built, so its reports lack the script that draws charts"
        raise UsageError(f"{problem}; pip install -e .") from error


def bundle_vega() -> str:
    """The script as vl-convert bundles it: Vega, Vega-Lite and Vega-Embed, 0.9 MB."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")
