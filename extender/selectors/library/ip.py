"""IP addresses (apiserver library/ip.go, Go's net/netip)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final

from extender.selectors.declarations import Function, Overload
from extender.selectors.errors import CelError
from extender.selectors.library.quoting import go_quote
from extender.selectors.types import BOOL, INT, IP, STRING
from extender.selectors.values import no_overload

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_PLAIN: Final = re.compile(r"[0-9a-fA-F:.]+")


class IpValue:
    """An address as a value. `cost_size` is its length in bytes."""

    __slots__ = ("address", "cost_size")
    type_name: Final = "net.IP"
    go_type: Final = "cel.IP"

    def __init__(self, address: Address) -> None:
        self.address = address
        self.cost_size = 4 if address.version == 4 else 16

    @property
    def key_form(self) -> Address:
        """What finds it as a map's key."""
        return self.address

    def equals(self, other: Any) -> bool:
        """Equality; raises CelError for anything but an address."""
        if not isinstance(other, IpValue):
            raise no_overload()
        return self.address == other.address


class AddressError(ValueError):
    """The text is no address that the language accepts."""


def read(text: str) -> Address:
    """Read an address; raise AddressError."""
    shown = go_quote(text)
    if "%" in text and ":" in text:
        zone = text.partition("%")
        if zone[2] and _parse(zone[0]) is not None:
            raise AddressError(f"IP address {shown} with zone value is not allowed")
    address = _parse(text)
    if address is None:
        raise AddressError(
            f"IP Address {shown} parse error during conversion from string:"
            f" ParseAddr({shown}): {_reason(text)}"
        )
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise AddressError(f"IPv4-mapped IPv6 address {shown} is not allowed")
    return address


def _parse(text: str) -> Address | None:
    if not _PLAIN.fullmatch(text):
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def bracket_fault(text: str) -> str | None:
    """Why a text can't be the IPv6 address (perhaps with a zone) between a URL's brackets; None if it can."""
    address, percent, zone = text.partition("%")
    parsed = _parse(address)
    if parsed is None:
        return f"invalid host: ParseAddr({go_quote(text)}): {_reason(text)}"
    if isinstance(parsed, ipaddress.IPv4Address):
        return "invalid IP-literal"
    if percent and not zone:
        return f"invalid host: ParseAddr({go_quote(text)}): zone must be a non-empty string"
    return None


def _reason(text: str) -> str:
    """Why it is no address, in Go's words, for the commonest reasons."""
    fields = text.split(".")
    if len(fields) == 4 and all(field.isascii() and field.isdecimal() for field in fields):
        if any(len(field) > 1 and field[0] == "0" for field in fields):
            return "IPv4 field has octet with leading zero"
        return "IPv4 field has value >255"
    return "unable to parse IP"


def address_text(address: Address) -> str:
    """An address as netip prints it."""
    return str(address)


def parse(text: Any) -> IpValue:
    """`ip(string)`."""
    try:
        return IpValue(read(text))
    except AddressError as error:
        raise CelError(str(error)) from error


def _is_ip(text: Any) -> bool:
    try:
        read(text)
    except AddressError:
        return False
    return True


def _is_canonical(text: Any) -> bool:
    return bool(address_text(parse(text).address) == text)


def _global_unicast(address: Address) -> bool:
    """Go's meaning: neither unspecified, loopback, multicast nor link-local; private ones are global."""
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or _link_local_unicast(address)
        or str(address) == "255.255.255.255"
    )


def _link_local_unicast(address: Address) -> bool:
    return address in _LINK_LOCAL[address.version]


def _link_local_multicast(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in _LINK_LOCAL_MULTICAST
    packed = address.packed
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


_LINK_LOCAL: Final = {
    4: ipaddress.ip_network("169.254.0.0/16"),
    6: ipaddress.ip_network("fe80::/10"),
}
_LINK_LOCAL_MULTICAST: Final = ipaddress.ip_network("224.0.0.0/24")


def _member(name: str, id_: str, run: Callable[[Address], bool]) -> Function:
    def on_value(value: Any) -> bool:
        return bool(run(value.address))

    return Function(name, (Overload(id_, (IP,), BOOL, member=True, run=on_value),))


FUNCTIONS: Final = (
    Function("ip", (Overload("string_to_ip", (STRING,), IP, run=parse),)),
    Function(
        "family",
        (Overload("ip_family", (IP,), INT, member=True, run=lambda value: value.address.version),),
    ),
    Function("ip.isCanonical", (Overload("ip_is_canonical", (STRING,), BOOL, run=_is_canonical),)),
    _member("isUnspecified", "ip_is_unspecified", lambda address: address.is_unspecified),
    _member("isLoopback", "ip_is_loopback", lambda address: address.is_loopback),
    _member("isLinkLocalMulticast", "ip_is_link_local_multicast", _link_local_multicast),
    _member("isLinkLocalUnicast", "ip_is_link_local_unicast", _link_local_unicast),
    _member("isGlobalUnicast", "ip_is_global_unicast", _global_unicast),
    Function("isIP", (Overload("is_ip", (STRING,), BOOL, run=_is_ip),)),
    Function(
        "string",
        (Overload("ip_to_string", (IP,), STRING, run=lambda value: address_text(value.address)),),
    ),
)
