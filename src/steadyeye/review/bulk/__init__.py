"""Fewer decisions: pairs that a similarity model skips, and the audit of these."""
