"""Review of a set by people: questions, decisions, and the results of both."""
