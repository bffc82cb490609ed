"""Golden queries and runs in the formats of other tools: read into a collection, written from one."""
