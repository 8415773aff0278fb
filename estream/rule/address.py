"""Which addresses a webhook may call: none of a private network, whatever name they hide behind."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from typing import Any

from estream.rule.failure import ActionFailed, ActionRefused

Resolve = Callable[[str, int], list[str]]
"""Gives the addresses of a host."""


def resolve(host: str, port: int) -> list[str]:
    """The addresses that the system knows of a host; ActionFailed if there are none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise ActionRefused(f"the host '{host}' is no name of a host") from None
    except OSError as error:
        raise ActionFailed(f"the host '{host}' is not known: {error.strerror or error}") from None
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def is_public(text: str) -> bool:
    """Whether an address belongs to the internet at large; those that wrap another are as public as that one."""
    address: Any = ipaddress.ip_address(text.partition("%")[0])
    inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None)
    teredo = getattr(address, "teredo", None)
    if inner is not None:
        return is_public(str(inner))
    if teredo is not None:
        return False
    return bool(address.is_global and not address.is_multicast and not address.is_reserved)


def allowed_address(host: str, port: int, allow_private: bool, lookup: Resolve = resolve) -> str:
    """One address of the host to connect to. It is looked up once, so that no second answer can differ."""
    addresses = lookup(host, port)
    for address in addresses:
        if not allow_private and not is_public(address):
            way = "allow it with 'allow_private: true' if it is meant"
            raise ActionRefused(f"'{host}' is {address}, an address of a private network; {way}")
    return addresses[0]
