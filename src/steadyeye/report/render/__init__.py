"""A report as files: HTML with films and charts, Markdown, tables; the list of runs."""
