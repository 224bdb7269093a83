"""Conclusions from few labels: the sets to label, the results, and when labels are enough."""
