"""Traces of an application, as OpenTelemetry and OpenInference write them, and what a run has of them."""
