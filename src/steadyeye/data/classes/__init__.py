"""Class lists with their WordNet ids, and maps between them."""
