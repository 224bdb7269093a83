"""Sets and decisions in other formats: COCO, pm-sets, MOTChallenge, Label Studio, CVAT."""
