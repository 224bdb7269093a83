"""One model plugin a file: a factory whose keyword arguments are those of the spec."""
