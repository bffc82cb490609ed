"""Convert golden queries, runs and scores from and to the formats of other tools."""
