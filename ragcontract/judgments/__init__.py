"""What a check needs of a judge: the judgments file, its replay, calibration, trust, the second pass."""
