"""Numbers: one metric a file, each a pure function of sealed predictions."""
