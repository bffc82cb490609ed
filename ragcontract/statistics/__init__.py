"""Numbers over many queries: means, percentiles, significance."""
