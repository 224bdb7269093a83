"""Degradation operators, one a file, after Swingler 2022."""
