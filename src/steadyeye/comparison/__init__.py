"""Models on the same samples: paired differences, several of them at once, and an order."""
