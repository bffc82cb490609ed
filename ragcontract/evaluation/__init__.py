"""Evaluation of a run or a baseline, row by row, into the data that the verdict is based on."""
