"""Accuracy, pm-k and their difference over parts of the data, side by side with published ones."""
