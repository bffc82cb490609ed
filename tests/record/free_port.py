"""A port on this machine that nobody listens on."""

import socket


def free_port() -> int:
    """Return a port that nobody listened on a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
