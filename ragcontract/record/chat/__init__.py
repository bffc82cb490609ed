"""A model that answers from what any target retrieved."""
