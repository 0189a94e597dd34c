"""What can go wrong with an expression: compile errors as values, run-time errors as one exception.

Owns the texts' frame (cel-go common/error.go) and nothing of the language.
"""

from __future__ import annotations

from dataclasses import dataclass


class CelError(Exception):
    """A run-time error of an expression; && and || may absorb it. The message is upstream's."""


class CostExceeded(Exception):  # noqa: N818 - an outcome upstream calls by this name; never absorbed
    """The cost limit was passed. `cost` is the count at that moment."""

    def __init__(self, cost: int) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
        self.cost = cost


class Aborted(Exception):  # noqa: N818 - an outcome; never absorbed
    """Upstream panics here, which ends the evaluation with an internal error."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One complaint: line from 1, column from 0 (in characters), message."""

    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class CompileError:
    """Why a text is no selector. `line` and `column` (both from 1) are those of the first issue."""

    message: str
    line: int
    column: int
    issues: tuple[Issue, ...] = ()


class Rejected(Exception):  # noqa: N818 - carries issues from the phases to `compile`, which returns a value
    """Raised inside the compiler when a phase can't go on."""

    def __init__(self, issues: list[Issue]) -> None:
        super().__init__(issues[0].message if issues else "")
        self.issues = issues


_MAX_REPORTED = 100
_MAX_SNIPPET = 16_384


class Source:
    """The text of an expression and the places in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0]
        start = text.find("\n")
        while start >= 0:
            self._starts.append(start + 1)
            start = text.find("\n", start + 1)

    def place(self, offset: int) -> tuple[int, int]:
        """Return (line from 1, column from 0) of a character offset."""
        low, high = 0, len(self._starts)
        while high - low > 1:
            middle = (low + high) // 2
            if self._starts[middle] <= offset:
                low = middle
            else:
                high = middle
        return low + 1, offset - self._starts[low]

    def issue(self, offset: int, message: str) -> Issue:
        """An issue at an offset."""
        line, column = self.place(offset)
        return Issue(line, column, message)

    def line(self, number: int) -> str | None:
        """The text of a line, from 1."""
        if not 1 <= number <= len(self._starts):
            return None
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[self._starts[number - 1] : end]

    def display(self, issues: list[Issue]) -> str:
        """All issues in order of place, each with its line and a mark below it."""
        ordered = sorted(issues, key=lambda i: (i.line, i.column))
        shown = [self._display(issue) for issue in ordered[:_MAX_REPORTED]]
        if len(ordered) > _MAX_REPORTED:
            shown.append(f"{len(ordered) - _MAX_REPORTED} more errors were truncated")
        return "\n".join(shown)

    def _display(self, issue: Issue) -> str:
        head = f"ERROR: <input>:{issue.line}:{issue.column + 1}: {issue.message}"
        snippet = self.line(issue.line)
        if snippet is None or len(snippet) > _MAX_SNIPPET:
            return head
        snippet = snippet.replace("\t", " ")
        before = "".join("．" if ord(c) > 127 else "." for c in snippet[: issue.column])  # noqa: RUF001 - as below
        at = snippet[issue.column : issue.column + 1]
        mark = "＾" if at and ord(at) > 127 else "^"  # noqa: RUF001 - the wide mark below wide characters
        return f"{head}\n | {snippet}\n | {before}{mark}"

    def reject(self, issues: list[Issue]) -> CompileError:
        """The compile error for these issues."""
        first = min(issues, key=lambda i: (i.line, i.column))
        message = "compilation failed: " + self.display(issues)
        return CompileError(message, first.line, first.column + 1, tuple(issues))
