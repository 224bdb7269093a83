"""Models compared: paired differences and an order that the data allows; the published line."""
