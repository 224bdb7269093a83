"""Label studies: sets of a run that people label until a question is answered."""
