"""Small JSON files that users write: class lists, class maps, hierarchies."""

import json
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_files import read_text


def tree(path: Place, title: str) -> Any:
    """What a JSON file holds; `title` names it in errors: "class list", "class map"."""
    try:
        return json.loads(read_text(path, title))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"cannot read the {title} '{path}': {error}") from error
