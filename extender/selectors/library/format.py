"""Named formats (apiserver library/format.go): format.dns1123Label().validate(text) and its kin."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any, Final

from extender.selectors.declarations import Function, Overload
from extender.selectors.library import url
from extender.selectors.library.quoting import go_quote
from extender.selectors.types import FORMAT, STRING, list_of, optional_of
from extender.selectors.values import NONE, Optional, no_overload

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = _LABEL + r"(\." + _LABEL + ")*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_BODY: Final = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character"
)
_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and"
    " end with an alphanumeric character"
)
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
    " start and end with an alphanumeric character"
)
_LABEL_1035_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic"
    " character, and end with an alphanumeric character"
)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}")
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")

Validate = Callable[[str], list[str]]


class FormatValue:
    """A format as a value. `regex_size` is what costs of validate() go by."""

    __slots__ = ("name", "regex_size", "validate")
    type_name: Final = "kubernetes.NamedFormat"
    go_type: Final = "cel.Format"
    unhashable: Final = True

    def __init__(self, name: str, validate: Validate, regex_size: int) -> None:
        self.name = name
        self.validate = validate
        self.regex_size = regex_size

    def equals(self, other: Any) -> bool:
        """Equality by name; raises CelError for anything but a format."""
        if not isinstance(other, FormatValue):
            raise no_overload()
        return self.name == other.name


def _regex_error(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(text: str, length: int) -> list[str]:
    return [f"must be no more than {length} bytes"] if len(text.encode()) > length else []


def _label(text: str) -> list[str]:
    errors = _too_long(text, 63)
    if not re.fullmatch(_LABEL, text):
        if re.fullmatch(_SUBDOMAIN, text):
            errors.append("must not contain dots")
        else:
            errors.append(_regex_error(_LABEL_TEXT, _LABEL, "my-name", "123-abc"))
    return errors


def _subdomain(text: str) -> list[str]:
    errors = _too_long(text, 253)
    if not re.fullmatch(_SUBDOMAIN, text):
        errors.append(_regex_error(_SUBDOMAIN_TEXT, _SUBDOMAIN, "example.com"))
    return errors


def _label_1035(text: str) -> list[str]:
    errors = _too_long(text, 63)
    if not re.fullmatch(_LABEL_1035, text):
        errors.append(_regex_error(_LABEL_1035_TEXT, _LABEL_1035, "my-name", "abc-123"))
    return errors


def _prefix(validate: Validate) -> Validate:
    """A name that more will be added to: it may end in a dash (upstream drops the character before, too)."""

    def run(text: str) -> list[str]:
        return validate(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)

    return run


def _qualified(text: str) -> list[str]:
    errors: list[str] = []
    shown = _regex_error("must " + _BODY, _KEY, "MyName", "my.name", "123-abc")
    parts = text.split("/")
    if len(parts) > 2:
        tail = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {shown}{tail}"]
    if len(parts) == 2:
        if not parts[0]:
            errors.append("prefix part must be non-empty")
        else:
            errors += [f"prefix part {error}" for error in _subdomain(parts[0])]
    name = parts[-1]
    if not name:
        errors.append("name part must be non-empty")
    else:
        errors += [f"name part {error}" for error in _too_long(name, 63)]
    if not re.fullmatch(_KEY, name):
        errors.append(f"name part {shown}")
    return errors


def _label_value(text: str) -> list[str]:
    errors = _too_long(text, 63)
    if text and not re.fullmatch(_KEY, text):
        message = f"a valid label must be an empty string or {_BODY}"
        errors.append(_regex_error(message, f"({_KEY})?", "MyValue", "my_value", "12345"))
    return errors


def _uri(text: str) -> list[str]:
    try:
        url.read(text)
    except url.UrlError as error:
        return [f"parse {go_quote(text)}: {error}"]
    return []


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = (int(part) for part in match.groups())
    try:
        date(year or 4, month, day)
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    parts = text.lower().split("t")
    if len(text) < 4 or len(parts) < 2 or not _is_date(parts[0]):
        return False
    match = _TIME.fullmatch(parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _check(accepts: Callable[[str], bool], message: str) -> Validate:
    def run(text: str) -> list[str]:
        return [] if accepts(text) else [message]

    return run


_TIME_PATTERN_SIZE: Final = 71

FORMATS: Final = {
    "dns1123Label": FormatValue("DNS1123Label", _label, 30),
    "dns1123Subdomain": FormatValue("DNS1123Subdomain", _subdomain, 60),
    "dns1035Label": FormatValue("DNS1035Label", _label_1035, 30),
    "qualifiedName": FormatValue("QualifiedName", _qualified, 60),
    "dns1123LabelPrefix": FormatValue("DNS1123LabelPrefix", _prefix(_label), 30),
    "dns1123SubdomainPrefix": FormatValue("DNS1123SubdomainPrefix", _prefix(_subdomain), 60),
    "dns1035LabelPrefix": FormatValue("DNS1035LabelPrefix", _prefix(_label_1035), 30),
    "labelValue": FormatValue("LabelValue", _label_value, 40),
    "uri": FormatValue("URI", _uri, 1103),
    "uuid": FormatValue(
        "uuid", _check(lambda t: bool(_UUID.fullmatch(t)), "does not match the UUID format"), 70
    ),
    "byte": FormatValue("byte", _check(lambda t: bool(_BASE64.fullmatch(t)), "invalid base64"), 84),
    "date": FormatValue("date", _check(_is_date, "invalid date"), _TIME_PATTERN_SIZE),
    "datetime": FormatValue("datetime", _check(_is_datetime, "invalid datetime"), _TIME_PATTERN_SIZE),
}


def _named(name: Any) -> Optional:
    found = FORMATS.get(name)
    return NONE if found is None else Optional(found)


def _validate(format_: Any, text: Any) -> Optional:
    errors = format_.validate(text)
    return Optional(errors) if errors else NONE


def _constant(name: str) -> Function:
    value = FORMATS[name]
    return Function(f"format.{name}", (Overload(f"format.{name}", (), FORMAT, run=lambda: value),))


FUNCTIONS: Final = (
    Function(
        "validate",
        (
            Overload(
                "format-validate",
                (FORMAT, STRING),
                optional_of(list_of(STRING)),
                member=True,
                run=_validate,
            ),
        ),
    ),
    Function("format.named", (Overload("format-named", (STRING,), optional_of(FORMAT), run=_named),)),
    *(_constant(name) for name in FORMATS),
)
