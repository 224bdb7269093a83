"""The templates of pages, compiled once."""

from pathlib import Path

import jinja2
from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

from steadyeye.core.storage.files import cache_home

HERE = Path(__file__).resolve().parent


def open_templates() -> Environment:
    """The templates of this package: names are escaped, and one that is missing is an error.

    What they compile to, a tenth of the time of a small report, is kept in the cache's folder;
    where that cannot be written they are compiled each time.
    """
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Jinja's own key is the text of a template alone, not what else its code depends on
    folder = cache_home() / "templates" / f"jinja-{jinja2.__version__}-1"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return made
    made.bytecode_cache = FileSystemBytecodeCache(str(folder), "%s.cache")
    return made


def read_static(name: str) -> str:
    """The text of one of our scripts or style sheets."""
    return (HERE / "static" / name).read_text(encoding="utf-8")
