"""Class lists, the WordNet ids that give them meaning, and maps between them."""
