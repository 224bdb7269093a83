"""Intervals, tests and bootstraps from counts and clusters."""
