"""Adds accessibility landmarks that the theme lacks to the pages of the site.

A hook of MkDocs: the search dialog gets a name, and an empty head of a column becomes a plain cell.
"""

from typing import Any

SEARCH = '<div class="md-search" data-md-component="search" role="dialog"'


def on_page_content(html: str, **_: Any) -> str:
    """The content of a page, with plain cells in place of empty heads of tables."""
    return html.replace("<th></th>", "<td></td>")


def on_post_page(output: str, **_: Any) -> str:
    """The page, with a name for its search dialog."""
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')
