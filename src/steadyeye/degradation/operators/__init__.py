"""Degradation operators, one per file, after Swingler 2022."""
