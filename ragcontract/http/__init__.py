"""Calls over HTTP, for GitHub, recorded systems and judges: deadlines, pauses that a server asks for, redaction."""
