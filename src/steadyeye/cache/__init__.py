"""Answers of models, kept by what they are answers to, so that no model is asked twice."""
