"""A YAML document in plain values, and the line on which each field stands.

Settings, policies and other people's configuration are read through this, so that every complaint can name
its line. Never: files, or what the fields mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

Path = tuple[str | int, ...]

_TIMESTAMP = "tag:yaml.org,2002:timestamp"

MOST_NODES = 200_000
"""More values than this are refused: aliases can multiply a small text without end."""


class Fault(NamedTuple):
    """Something wrong in a document; `line` counts from 1, `path` is dotted ("extenders[0].weight")."""

    line: int
    path: str
    text: str


class DocumentError(Exception):
    """The text is no YAML, or more of it than anybody needs."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"line {line}: {text}")
        self.line = line
        self.text = text


@dataclass(frozen=True, slots=True)
class Document:
    """One document: `value` in dicts, lists and scalars, the line of each path, and keys given twice."""

    value: Any
    lines: Mapping[Path, int]
    repeated: tuple[Fault, ...] = field(default=())

    def line(self, path: Path) -> int:
        """The line of a field, or of the nearest field around it that is written down."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def dotted(path: Path) -> str:
    """A path as people write it: ("extenders", 0, "weight") is "extenders[0].weight"."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def read_documents(text: str) -> Iterator[Document]:
    """Read every document of a YAML text (JSON is YAML, too); an empty one has the value None.

    Raises:
        DocumentError: The text is no YAML, is nested too deeply, or multiplies itself by aliases.
    """
    loader: yaml.SafeLoader | None = None
    try:
        loader = yaml.SafeLoader(text)
        while loader.check_node():
            yield _Reading(loader).document(loader.get_node())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DocumentError(mark.line + 1 if mark else 1, error.problem or "no YAML") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise DocumentError(line, f"character {error.character!r} is not allowed") from error
    except RecursionError as error:
        raise DocumentError(1, "nested too deeply") from error
    finally:
        if loader is not None:
            loader.dispose()


class _Reading:
    """Turns a node tree into values, keeping the lines."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self._loader = loader
        self._lines: dict[Path, int] = {}
        self._repeated: list[Fault] = []
        self._left = MOST_NODES

    def document(self, node: yaml.Node | None) -> Document:
        value = None if node is None else self._value(node, (), node.start_mark.line + 1)
        return Document(value, self._lines, tuple(self._repeated))

    def _value(self, node: yaml.Node, path: Path, line: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise DocumentError(line, f"more than {MOST_NODES} values")
        self._lines[path] = line
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [
                self._value(item, (*path, index), item.start_mark.line + 1)
                for index, item in enumerate(node.value)
            ]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise DocumentError(line, "a key must be a word")
            key = str(key_node.value)
            if key in found:
                self._repeated.append(Fault(line, dotted((*path, key)), "is given twice"))
            found[key] = self._value(value_node, (*path, key), line)
        return found

    def _scalar(self, node: yaml.Node) -> Any:
        if node.tag == _TIMESTAMP:
            return node.value  # JSON has no times: a Kubernetes object keeps them as texts
        try:
            return self._loader.construct_object(node)
        except ValueError as error:
            raise DocumentError(node.start_mark.line + 1, str(error)) from error
