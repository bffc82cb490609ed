"""Applications made with the frameworks, as users have them."""
