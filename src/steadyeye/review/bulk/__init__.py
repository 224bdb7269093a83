"""Fewer decisions: pairs that are skipped by a similarity model, and the audit of that."""
