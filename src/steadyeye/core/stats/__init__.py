"""Intervals, tests and bootstraps: from counts and clusters to what may be said of them."""
