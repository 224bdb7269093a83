"""Jobs: read, checked, run to sealed predictions, summed up in a report."""
