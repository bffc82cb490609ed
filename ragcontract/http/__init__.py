"""Calls over HTTP, for GitHub and for recorded systems: deadlines, pauses that a server asks for, redaction."""
