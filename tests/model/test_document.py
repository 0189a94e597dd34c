"""Documents keep the line of every field, and bad text is refused in bounded time."""

from __future__ import annotations

import pytest

from extender.model.document import Document, DocumentError, Fault, dotted, read_documents


def only(text: str) -> Document:
    [document] = read_documents(text)
    return document


def test_each_path_has_the_line_of_its_key() -> None:
    document = only("a: 1\nb:\n  - x: 2\n    y: [1,\n      2]\n")
    assert document.value == {"a": 1, "b": [{"x": 2, "y": [1, 2]}]}
    assert [document.line(path) for path in [("a",), ("b",), ("b", 0, "y"), ("b", 0, "y", 1)]] == [1, 2, 4, 5]


def test_a_path_that_is_not_written_has_the_line_around_it() -> None:
    assert only("a:\n  b: 1\n").line(("a", "c", 3)) == 1


def test_a_repeated_key_is_kept_as_a_fault() -> None:
    assert only("a: {b: 1,\n b: 2}\n").repeated == (Fault(2, "a.b", "is given twice"),)


def test_several_documents_are_read_with_lines_of_the_file() -> None:
    first, second = read_documents("a: 1\n---\nb: 2\n")
    assert (first.line(("a",)), second.line(("b",))) == (1, 3)


def test_paths_are_written_with_dots_and_brackets() -> None:
    assert dotted(("extenders", 0, "weight")) == "extenders[0].weight"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [", 2),
        ("a: *x", 1),
        ("a: 1\nb: \x00", 2),
        ("a: &a [1, *a]", 1),
        ("? [a]\n: 1", 1),
        ("a: !!python/object:os.system x", 1),
        ("[" * 10_000, 1),
    ],
)
def test_text_that_is_no_plain_yaml_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(DocumentError) as caught:
        list(read_documents(text))
    assert caught.value.line == line


def test_aliases_cannot_multiply_a_small_text_without_end() -> None:
    levels = "\n".join(f"k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 10)}]" for i in range(1, 12))
    with pytest.raises(DocumentError, match="more than"):
        list(read_documents(f"k0: &k0 x\n{levels}\n"))


def test_a_time_stays_a_text() -> None:
    (document,) = read_documents("metadata: {creationTimestamp: 2026-01-01T00:00:00Z}\n")
    assert document.value == {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}
