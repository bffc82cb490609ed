"""Asks the systems of mounted projects what somebody wants to know now, and says what their contracts think of it."""
