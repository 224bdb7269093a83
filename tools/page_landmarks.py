"""Adds accessibility landmarks that the theme lacks to the pages of the site.

A hook of MkDocs: the search dialog gets a name, an empty head of a column becomes a plain cell, and
no line breaks between a number and its percent sign.
"""

import re
from typing import Any

SEARCH = '<div class="md-search" data-md-component="search" role="dialog"'
PERCENT = re.compile(r"<(pre|code)\b.*?</\1>|(?<=\d) (?=%)", re.DOTALL)
"""A space before a percent sign; code, which is copied, matches as a whole."""


def on_page_content(html: str, **_: Any) -> str:
    """The content of a page, with plain cells in place of empty heads of tables."""
    html = html.replace("<th></th>", "<td></td>")
    return PERCENT.sub(lambda match: match[0] if match[1] else "\u202f", html)


def on_post_page(output: str, **_: Any) -> str:
    """The page, with a name for its search dialog."""
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')
