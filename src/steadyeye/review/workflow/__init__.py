"""The course of a review: items, the queue, decisions and their consequences."""
