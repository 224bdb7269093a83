"""Sets and decisions in the forms of others: COCO, the released layout, Label Studio, CVAT."""
