"""Reports of results as an HTML page, Markdown, JSON and a table of numbers."""
