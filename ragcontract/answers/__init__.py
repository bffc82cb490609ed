"""Answers: their texts, patterns in them, refusals, tool calls and turns. Pure."""
