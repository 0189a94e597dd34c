"""What the sections of the settings are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

from extender.model.addresses import is_http_url
from extender.model.schema import FIELD


class Section(BaseModel):
    """A part of the settings."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=True
    )


def blame(text: str, *below: str) -> PydanticCustomError:
    """The fault of several fields together, shown at one of them."""
    return PydanticCustomError("together", text, {FIELD: below})


def _url(text: str) -> str:
    if text and not is_http_url(text):
        raise PydanticCustomError("url", "must be an http or https URL")
    return text


def _url_of_nodes(pattern: str) -> str:
    if pattern and "{node}" not in pattern:
        raise PydanticCustomError(
            "pattern", "must say {place} where the node's name belongs", {"place": "{node}"}
        )
    _url(pattern.replace("{node}", "node"))
    return pattern


def _urls(given: dict[str, str]) -> dict[str, str]:
    for name, url in given.items():
        if not is_http_url(url):
            raise PydanticCustomError("url", "{name} must be an http or https URL", {"name": name})
    return given


UrlOrNothing = Annotated[str, AfterValidator(_url)]
UrlOfNodes = Annotated[str, AfterValidator(_url_of_nodes)]
"""With `{node}` in it, or empty."""
UrlsByName = Annotated[dict[str, str], AfterValidator(_urls)]
