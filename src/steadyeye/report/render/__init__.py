"""A report as a file: HTML with its films and charts, Markdown, tables; the list of runs."""
