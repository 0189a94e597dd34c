"""URLs (apiserver library/urls.go). Owns reading them as Go's net/url does for absolute URLs and paths."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote, unquote_plus

from extender.selectors.declarations import Function, Overload
from extender.selectors.errors import CelError
from extender.selectors.library.ip import bracket_fault
from extender.selectors.library.quoting import go_quote
from extender.selectors.types import BOOL, STRING, URL, list_of, map_of
from extender.selectors.values import MapValue, no_overload

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")
_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_HOST_BAD: Final = re.compile(r"[ \\^`{|}/?#@]|[\x00-\x1f\x7f]")
_HOST_ESCAPE: Final = re.compile(r"%(?![89a-fA-F][0-9a-fA-F]|25)")
"""In a host only bytes beyond ASCII and the percent sign itself may be escaped."""
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PATH_ENCODED: Final = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]*")


class UrlError(ValueError):
    """The text is no URL. The message is upstream's, without its head."""


class UrlValue:
    """A URL as a value."""

    __slots__ = ("escaped_path", "host", "query", "scheme", "text")
    type_name: Final = "kubernetes.URL"
    go_type: Final = "cel.URL"

    def __init__(self, text: str) -> None:
        self.text = text
        rest, hash_, _fragment = text.partition("#")
        _ = hash_
        self.scheme, rest = _scheme(rest)
        if self.scheme and not rest.startswith("/"):
            rest = ""  # opaque, as in mailto:
        rest, _mark, self.query = rest.partition("?")
        self.host = ""
        if rest.startswith("//") and (self.scheme or not rest.startswith("///")):
            authority, slash, path = rest[2:].partition("/")
            rest = slash + path
            self.host = _authority(self.scheme, authority)
        self.escaped_path = _path(rest)

    @property
    def key_form(self) -> object:
        """What finds it as a map's key: nothing, for upstream reads even a constant text anew each time."""
        return object()

    def equals(self, other: Any) -> bool:
        """Equality by text; raises CelError for anything but a URL."""
        if not isinstance(other, UrlValue):
            raise no_overload()
        return self.text == other.text


def _scheme(text: str) -> tuple[str, str]:
    head, colon, rest = text.partition(":")
    if colon and "/" not in head and "?" not in head:
        if not head:
            raise UrlError("missing protocol scheme")
        if _SCHEME.fullmatch(head):
            return head.lower(), rest
        if not head[0].isascii() or not head[0].isalpha():
            raise UrlError("first path segment in URL cannot contain colon")
    return "", text


def _authority(scheme: str, authority: str) -> str:
    userinfo, at, host = authority.rpartition("@")
    host = _host(scheme, host)
    if at:
        if not _USER.fullmatch(userinfo):
            raise UrlError("net/url: invalid userinfo")
        _check_escapes(_ESCAPE, userinfo)
    return host


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise UrlError("invalid IP-literal")
    if bracket == 0:
        end = host.rfind("]")
        if end < 0:
            raise UrlError("missing ']' in host")
        return f"[{_literal(host[1:end])}]{_checked_port(host[end + 1 :])}"
    # Several colons are tolerated but for the schemes of the web.
    colon = host.find(":") if scheme in {"http", "https"} else host.rfind(":")
    if colon >= 0:
        _checked_port(host[colon:])
    return _unescaped_host(host)


def _literal(address: str) -> str:
    """What stands between brackets; a zone follows %25 and may escape whatever a host may hold."""
    place = address.find("%25")
    if place < 0:
        text = _unescaped_host(address)
    else:
        text = _unescaped_host(address[:place]) + _zone(address[place:])
    fault = bracket_fault(text)
    if fault is not None:
        raise UrlError(fault)
    return text


def _zone(zone: str) -> str:
    _check_escapes(_ESCAPE, zone)
    for found in re.finditer("%(..)", zone):
        byte = chr(int(found[1], 16))
        if byte not in {"%", " "} and (byte > "\x7f" or _HOST_BAD.match(byte)):
            raise UrlError(f"invalid URL escape {go_quote(found[0])}")
    return _unescaped_host(zone, _ESCAPE)


def _unescaped_host(host: str, bad_escape: re.Pattern[str] = _HOST_ESCAPE) -> str:
    _check_escapes(bad_escape, host)
    wrong = _HOST_BAD.search(host)
    if wrong is not None:
        raise UrlError(f"invalid character {go_quote(wrong[0])} in host name")
    return unquote(host)


def _checked_port(port: str) -> str:
    if not _PORT.fullmatch(port):
        raise UrlError(f"invalid port {go_quote(port)} after host")
    return port


def _check_escapes(bad: re.Pattern[str], text: str) -> None:
    found = bad.search(text)
    if found is not None:
        raise UrlError(f"invalid URL escape {go_quote(text[found.start() : found.start() + 3])}")


def _path(path: str) -> str:
    _check_escapes(_ESCAPE, path)
    if _PATH_ENCODED.fullmatch(path):
        return path
    kept = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@")
    return "".join(chr(byte) if byte in kept else f"%{byte:02X}" for byte in unquote(path).encode())


def read(text: str) -> UrlValue:
    """Read an absolute URL or an absolute path; raise UrlError."""
    if _CONTROL.search(text.replace(" ", "")):
        raise UrlError("net/url: invalid control character in URL")
    if not text:
        raise UrlError("empty url")
    value = UrlValue(text)
    if not value.scheme and not text.startswith("/") and text != "*":
        raise UrlError("invalid URI for request")
    return value


def parse(text: Any) -> UrlValue:
    """`url(string)`."""
    try:
        return read(text)
    except UrlError as error:
        raise CelError(
            f"URL parse error during conversion from string: parse {go_quote(text)}: {error}"
        ) from error


def _is_url(text: Any) -> bool:
    try:
        read(text)
    except UrlError:
        return False
    return True


def _hostname(value: Any) -> str:
    host = _without_port(value.host)
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _without_port(host: str) -> str:
    colon = host.rfind(":")
    return host[:colon] if colon >= 0 and _PORT.fullmatch(host[colon:]) and "]" not in host[colon:] else host


def _port(value: Any) -> str:
    host = value.host
    colon = host.rfind(":")
    if colon < 0 or "]" in host[colon:] or not _PORT.fullmatch(host[colon:]):
        return ""
    return str(host[colon + 1 :])


def _query(value: Any) -> MapValue:
    data: dict[str, list[str]] = {}
    for pair in value.query.split("&"):
        if not pair or ";" in pair:
            continue
        key, _, item = pair.partition("=")
        if _ESCAPE.search(key) or _ESCAPE.search(item):
            continue
        data.setdefault(unquote_plus(key), []).append(unquote_plus(item))
    return MapValue(data)


def _member(name: str, id_: str, run: Any) -> Function:
    return Function(name, (Overload(id_, (URL,), STRING, member=True, run=run),))


FUNCTIONS: Final = (
    Function("url", (Overload("string_to_url", (STRING,), URL, run=parse),)),
    _member("getScheme", "url_get_scheme", lambda value: value.scheme),
    _member("getHost", "url_get_host", lambda value: value.host),
    _member("getHostname", "url_get_hostname", _hostname),
    _member("getPort", "url_get_port", _port),
    _member("getEscapedPath", "url_get_escaped_path", lambda value: value.escaped_path),
    Function(
        "getQuery",
        (Overload("url_get_query", (URL,), map_of(STRING, list_of(STRING)), member=True, run=_query),),
    ),
    Function("isURL", (Overload("is_url_string", (STRING,), BOOL, run=_is_url),)),
)
