"""Analyses, one section of the report per file, from sealed predictions alone."""
