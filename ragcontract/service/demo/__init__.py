"""The demo of the team service: four invented projects, and what happened to them in 90 days."""
