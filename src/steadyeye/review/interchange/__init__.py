"""Sets and decisions in other forms: COCO, pm-sets, MOTChallenge, Label Studio, CVAT."""
