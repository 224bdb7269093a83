"""A model's answers along time: how long each holds, how sure it is, where it wavers."""
