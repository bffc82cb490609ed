"""From what a run returned to golden rows: questions, candidates, labels, and the golden file that holds them."""
