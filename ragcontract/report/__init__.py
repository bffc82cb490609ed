"""The report record and the formats that are made from it."""
