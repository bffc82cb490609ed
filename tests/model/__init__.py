"""A second opinion on verdicts: a model of checks that is written from the documents only."""
