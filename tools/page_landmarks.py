"""Gives the pages of the site what the theme leaves out for screen readers.

A hook of MkDocs: the search dialog gets a name, and a cell that heads no column is a plain one.
"""

from typing import Any

SEARCH = '<div class="md-search" data-md-component="search" role="dialog"'


def on_page_content(html: str, **_: Any) -> str:
    """The content of a page, with plain cells where the head of a table is empty."""
    return html.replace("<th></th>", "<td></td>")


def on_post_page(output: str, **_: Any) -> str:
    """The page, with a name for its search dialog."""
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')
