"""The set that is reviewed: frames drawn, images stored, near duplicates marked; splits."""
