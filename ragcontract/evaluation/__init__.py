"""Folding a run or a baseline, row by row, into what the verdict rests on."""
