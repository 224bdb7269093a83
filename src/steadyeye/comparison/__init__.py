"""Models compared: with one another, and with those published."""
