"""Statistics over queries: means, percentiles, significance."""
