"""Models that `finetune` trained: new heads, and the folders that hold them."""
