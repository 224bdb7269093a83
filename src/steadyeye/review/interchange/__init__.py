"""Sets and decisions exported and imported: COCO, the released layout, Label Studio, CVAT."""
