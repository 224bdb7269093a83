"""The set that is reviewed: frames drawn, images stored, cuts and near duplicates marked; splits."""
