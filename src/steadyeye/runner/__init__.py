"""Jobs: reading, validating and running them to sealed predictions."""
