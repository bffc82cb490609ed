"""Judges an evaluated run: rules of single queries, gates on means and latency, waivers. Pure."""
