"""The HTTP API, the page and metrics."""
