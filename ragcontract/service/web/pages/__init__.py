"""The pages of the service: what people see in a browser. Each answers one question on its first screen."""
