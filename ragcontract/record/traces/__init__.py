"""Read the traces of an application, as OpenTelemetry and OpenInference write them, for a run."""
