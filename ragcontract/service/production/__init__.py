"""What people ask in production: storing it, watching it, and choosing questions for the contract."""
