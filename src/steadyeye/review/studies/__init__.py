"""Label studies: sets of a run that people label in an order, until a question is answered."""
