"""Which addresses are this machine: where a token may go over plain http."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """True for loopback addresses and for the name localhost."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
