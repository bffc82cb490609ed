"""Rules on a query, with one module per family."""
