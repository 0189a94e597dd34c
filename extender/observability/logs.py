"""Logs: one JSON object a line (or text for people) on one stream, the libraries' logs among them.

Never: a secret. What looks like a token is taken out wherever it stands, in a field, a text or a traceback.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

REDACTED = "[redacted]"

_SECRET_KEY = re.compile(
    r"(authorization|cookie|passw(or)?d|secret|credential|private[-_ ]?key|api[-_ ]?key|(^|[-_ .])token)s?$",
    re.IGNORECASE,
)
# A bearer credential as in a header, and a JSON web token wherever it stands.
_SECRET_TEXT = re.compile(
    r"(?i:\b(bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}|\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"
)
_DEEPEST = 6


def configure(level: str, form: Literal["json", "console"], stream: TextIO) -> None:
    """Set up structlog and the standard library's logging, once, at start.

    Args:
        level: Least level that is written: "debug", "info", "warning" or "error".
        form: One JSON object a line, or text for people.
        stream: Where the lines go.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    render: Processor = (
        structlog.processors.JSONRenderer(default=repr)
        if form == "json"
        else structlog.dev.ConsoleRenderer(
            colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                redact,
                render,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # Debug is about what we do; a library's debug lines are several for each request.
    root.setLevel(max(number, logging.INFO))
    logging.getLogger("extender").setLevel(number)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True
        library.setLevel(logging.NOTSET)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(number),
        cache_logger_on_first_use=True,
    )


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Take tokens and the like out of an event (a structlog processor)."""
    return {key: REDACTED if _is_secret(key, value) else _clean(value, 0) for key, value in event.items()}


def _is_secret(key: object, value: object) -> bool:
    return bool(value) and isinstance(key, str) and _SECRET_KEY.search(key) is not None


def _clean(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping | Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return _clean_inside(value, depth + 1)
    text = value if isinstance(value, str) else repr(value)
    return _SECRET_TEXT.sub(lambda found: f"{found[1]} {REDACTED}" if found[1] else REDACTED, text)


def _clean_inside(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return {
            str(key): REDACTED if _is_secret(key, item) else _clean(item, depth)
            for key, item in value.items()
        }
    return [_clean(item, depth) for item in value]
