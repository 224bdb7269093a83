"""Charts and sentences of explanations."""
