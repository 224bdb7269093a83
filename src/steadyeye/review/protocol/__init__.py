"""The rules of a review: stages, plan, reviewers, and how votes settle an item."""
