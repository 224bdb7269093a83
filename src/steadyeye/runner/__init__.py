"""Jobs: read, validated, run to sealed predictions."""
