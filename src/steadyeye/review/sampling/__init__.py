"""What is reviewed: frames drawn, images stored, near duplicates left out, splits."""
