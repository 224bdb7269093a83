"""What a review is: its stages, its plan, its reviewers, and how votes settle an item."""
