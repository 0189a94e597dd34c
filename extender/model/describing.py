"""Types and defaults of a model's fields in words, for a page of documentation.

Never: the page.
"""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin


def type_text(annotation: Any) -> str:
    """A field's type."""
    names = {str: "text", bool: "true or false", int: "whole number", float: "number", Path: "path"}
    if annotation in names:
        return names[annotation]
    arguments = get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(f"`{each.value}`" for each in annotation)
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if get_origin(annotation) is tuple:
        return f"list of {type_text(arguments[0])}"
    if get_origin(annotation) is dict:
        return f"mapping to {type_text(arguments[1])}"
    return " or ".join(type_text(argument) for argument in arguments if argument is not NoneType)


def default_text(value: Any) -> str:
    """A field's default as it is written in a file, in backquotes."""
    if value is None:
        return "none"
    return f"`{json.dumps(value if isinstance(value, str | int | float | tuple | dict) else str(value))}`"
