"""Finding what detectors are confidently wrong about: causes, one candidate a mistake, ranking."""
