"""Networks (apiserver library/cidr.go, Go's net/netip). A network keeps the host bits it was written with."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final

from extender.selectors.declarations import Function, Overload
from extender.selectors.errors import CelError
from extender.selectors.library import ip
from extender.selectors.library.ip import Address, IpValue, address_text
from extender.selectors.library.quoting import go_quote
from extender.selectors.types import BOOL, CIDR, INT, IP, STRING
from extender.selectors.values import no_overload

_BITS: Final = re.compile(r"0|[1-9][0-9]{0,2}")


class CidrValue:
    """A network as a value. `cost_size` is its prefix length in bytes, rounded up."""

    __slots__ = ("address", "bits", "cost_size")
    type_name: Final = "net.CIDR"
    go_type: Final = "cel.CIDR"

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits
        self.cost_size = (bits + 7) // 8

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """The network without host bits."""
        return ipaddress.ip_network((self.address, self.bits), strict=False)

    @property
    def key_form(self) -> tuple[Address, int]:
        """What finds it as a map's key."""
        return self.address, self.bits

    def equals(self, other: Any) -> bool:
        """Equality, host bits included; raises CelError for anything but a network."""
        if not isinstance(other, CidrValue):
            raise no_overload()
        return self.address == other.address and self.bits == other.bits


class CidrError(ValueError):
    """The text is no network that the language accepts."""


def _read(text: str) -> CidrValue:
    shown = go_quote(text)
    head = f"network address parse error during conversion from string: netip.ParsePrefix({shown}): "
    written, slash, bits = text.rpartition("/")
    if not slash:
        raise CidrError(head + "no '/'")
    try:
        address = ip.read(written)
    except ip.AddressError as error:
        if "mapped" in str(error):
            raise CidrError(f"IPv4-mapped IPv6 address {shown} is not allowed") from error
        if "zone" in str(error):
            raise CidrError(head + "IPv6 zones cannot be present in a prefix") from error
        raise CidrError(head + f"ParseAddr({go_quote(written)}): unable to parse IP") from error
    if not _BITS.fullmatch(bits):
        raise CidrError(head + f"bad bits after slash: {go_quote(bits)}")
    if int(bits) > address.max_prefixlen:
        raise CidrError(head + "prefix length out of range")
    return CidrValue(address, int(bits))


def parse(text: Any) -> CidrValue:
    """`cidr(string)`."""
    try:
        return _read(text)
    except CidrError as error:
        raise CelError(f"network address parse error during conversion from string: {error}") from error


def _is_cidr(text: Any) -> bool:
    try:
        _read(text)
    except CidrError:
        return False
    return True


def _contains_ip(value: Any, address: Any) -> bool:
    if type(address) is str:
        try:
            address = IpValue(ip.read(address))
        except ip.AddressError as error:
            raise no_overload() from error  # upstream loses the reason
    inner = address
    return inner.address in value.network


def _contains_cidr(value: Any, other: Any) -> bool:
    inner: Any = parse(other) if type(other) is str else other
    if inner.address.version != value.address.version:
        return False
    return bool(value.network.overlaps(inner.network) and value.bits <= inner.bits)


def _masked(value: Any) -> CidrValue:
    return CidrValue(value.network.network_address, value.bits)


FUNCTIONS: Final = (
    Function("cidr", (Overload("string_to_cidr", (STRING,), CIDR, run=parse),)),
    Function(
        "containsIP",
        (
            Overload("cidr_contains_ip_string", (CIDR, STRING), BOOL, member=True, run=_contains_ip),
            Overload("cidr_contains_ip_ip", (CIDR, IP), BOOL, member=True, run=_contains_ip),
        ),
    ),
    Function(
        "containsCIDR",
        (
            Overload("cidr_contains_cidr_string", (CIDR, STRING), BOOL, member=True, run=_contains_cidr),
            Overload("cidr_contains_cidr", (CIDR, CIDR), BOOL, member=True, run=_contains_cidr),
        ),
    ),
    Function(
        "ip", (Overload("cidr_ip", (CIDR,), IP, member=True, run=lambda value: IpValue(value.address)),)
    ),
    Function(
        "prefixLength",
        (Overload("cidr_prefix_length", (CIDR,), INT, member=True, run=lambda value: value.bits),),
    ),
    Function("masked", (Overload("cidr_masked", (CIDR,), CIDR, member=True, run=_masked),)),
    Function("isCIDR", (Overload("is_cidr", (STRING,), BOOL, run=_is_cidr),)),
    Function(
        "string",
        (
            Overload(
                "cidr_to_string",
                (CIDR,),
                STRING,
                run=lambda value: f"{address_text(value.address)}/{value.bits}",
            ),
        ),
    ),
)
