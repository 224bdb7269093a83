"""A model's predictions along time: their durations, confidences and changes."""
