"""The probe port: opened by the supervisor, so that it outlives every process that answers on it."""

import socket

BACKLOG = 128


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; not inherited by programs that are started. Port 0: a free one.

    `host`: an address or `localhost`; nothing is looked up, so nothing waits. `::` takes IPv4, too. Raises OSError.
    """
    address = "127.0.0.1" if host.lower() == "localhost" else host
    if ":" not in address:
        listening = socket.create_server((address, port), backlog=BACKLOG)
    else:
        both = address == "::" and socket.has_dualstack_ipv6()
        listening = socket.create_server((address, port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=both)
    # A connection that is gone by the time it is accepted must not make the server wait for the next one.
    listening.setblocking(False)
    return listening
