"""What the numbers mean: one section of the report a file, from sealed predictions alone."""
