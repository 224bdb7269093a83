"""A report: what was found as one page, as Markdown, as JSON and as a table of numbers."""
