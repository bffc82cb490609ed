"""HTTP: sessions, calls that end in time, secrets, and the pace of calls."""
