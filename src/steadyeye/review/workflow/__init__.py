"""A review at work: items, the queue, decisions and what follows from each."""
