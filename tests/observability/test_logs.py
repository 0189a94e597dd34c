"""Logs: one JSON object a line, libraries included, secrets never."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from extender.observability.logs import REDACTED, configure, redact

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl"


def fail(text: str) -> None:
    raise ValueError(text)


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_time_level_and_logger() -> None:
    stream = io.StringIO()
    configure("info", "json", stream)
    structlog.get_logger("extender.kube").info("synced", kind="Pod", objects=3)
    [line] = lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {
        "event": "synced",
        "kind": "Pod",
        "objects": 3,
        "level": "info",
        "logger": "extender.kube",
    }


def test_a_librarys_line_looks_the_same() -> None:
    stream = io.StringIO()
    configure("info", "json", stream)
    logging.getLogger("uvicorn.error").warning("%s went %s", "it", "wrong")
    [line] = lines(stream)
    assert (line["event"], line["level"], line["logger"]) == ("it went wrong", "warning", "uvicorn.error")


def test_less_than_the_level_is_not_written() -> None:
    stream = io.StringIO()
    configure("warning", "json", stream)
    structlog.get_logger().info("no")
    logging.getLogger("uvicorn.error").info("no")
    assert lines(stream) == []


def test_a_traceback_stays_on_its_line() -> None:
    stream = io.StringIO()
    configure("info", "json", stream)
    try:
        fail("first\nsecond")
    except ValueError:
        structlog.get_logger().exception("fault")
    [line] = lines(stream)
    assert "ValueError: first\nsecond" in line["exception"]


@pytest.mark.parametrize(
    "key", ["Authorization", "token", "bearer_token", "client-secret", "password", "apiKey"]
)
def test_a_field_with_a_secrets_name_is_never_written(key: str) -> None:
    stream = io.StringIO()
    configure("info", "json", stream)
    structlog.get_logger().info("asked", headers={key: "hush"}, **{key: "hush"})
    assert "hush" not in stream.getvalue()


@pytest.mark.parametrize("name", ["info", "foreign", "exception", "bytes", "list"])
def test_a_token_is_never_written_wherever_it_stands(name: str) -> None:
    stream = io.StringIO()
    configure("info", "json", stream)
    log = structlog.get_logger()
    if name == "foreign":
        logging.getLogger("asyncio").error("header %s", f"Bearer {JWT}")
    elif name == "exception":
        try:
            fail(f"refused: {JWT}")
        except ValueError:
            log.exception("fault")
    else:
        value: object = {"info": f"x {JWT} y", "bytes": JWT.encode(), "list": [{"a": (f"bearer {JWT}",)}]}[
            name
        ]
        log.info("asked", value=value)
    assert len(lines(stream)) == 1
    assert "eyJ" not in stream.getvalue()
    assert REDACTED in stream.getvalue()


def test_words_about_tokens_are_left_alone() -> None:
    event = redact(None, "info", {"event": "token is old", "token_age_seconds": 3, "tokens": 0})
    assert event == {"event": "token is old", "token_age_seconds": 3, "tokens": 0}


def test_text_for_people_has_a_line_an_event() -> None:
    stream = io.StringIO()
    configure("info", "console", stream)
    structlog.get_logger().info("synced", kind="Pod")
    assert "synced" in stream.getvalue()
    assert "kind=Pod" in stream.getvalue()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_any_value_can_be_written_as_one_line(value: object) -> None:
    stream = io.StringIO()
    configure("info", "json", stream)
    structlog.get_logger().info("any", value=value)
    assert len(stream.getvalue().splitlines()) == 1
    json.loads(stream.getvalue())


def test_at_debug_our_own_lines_are_written_and_a_librarys_are_not() -> None:
    stream = io.StringIO()
    configure("debug", "json", stream)
    structlog.get_logger("extender.verbs").debug("decision")
    logging.getLogger("httpcore.connection").debug("connect_tcp.started")
    logging.getLogger("asyncio").debug("Using selector")
    assert [line["event"] for line in lines(stream)] == ["decision"]
