"""A model's predictions along time: how long each holds, how sure it is, where it changes."""
