"""The contract: golden queries and configuration, and the metrics, rules and gates resolved from them."""
