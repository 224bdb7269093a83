"""Model backends: one plugin per file, a factory with the keyword arguments of the spec."""
