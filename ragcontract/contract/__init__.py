"""What a team wrote down: golden queries and configuration, and what is resolved from them."""
