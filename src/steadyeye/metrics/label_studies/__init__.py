"""Conclusions from few labels: which sets to label, what they show, when they are enough."""
