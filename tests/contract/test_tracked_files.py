"""What git tracks speaks of the project alone and runs on any machine."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_DOT = re.escape(".")
# Spelled in pieces, so that this file does not find itself.
_REGISTRIES = [
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("proxy.golang", "org"),
    ("sum.golang", "org"),
    ("npmjs", "org"),
    ("crates", "io"),
    ("maven", "org"),
    ("deb.debian", "org"),
]
_FORBIDDEN = {
    "the address of a package registry": "|".join(re.escape(name) + _DOT + top for name, top in _REGISTRIES),
    "a path of one machine": "/" + "work/|/" + "root/|/" + "home/[a-z]+/",
    "a folder outside the repository": _DOT * 2 + "/shared",
    "an unfinished module": '^"""TODO' + '."""$',
    "an unresolved merge": "^<{7} |^>{7} ",
}
_LONGEST = 500


@cache
def _tracked() -> tuple[Path, ...]:
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=_ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    paths = (_ROOT / name for name in done.stdout.split("\0") if name)
    return tuple(path for path in paths if path.is_file())


@pytest.mark.parametrize("what", _FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    pattern = re.compile(_FORBIDDEN[what], re.MULTILINE)
    found = []
    for path in _tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        hit = pattern.search(text)
        if hit is not None:
            found.append(f"{path.relative_to(_ROOT)}:{text.count(chr(10), 0, hit.start()) + 1}: {hit[0]}")
    assert not found, "\n".join(found)


def test_no_module_outgrows_one_subject() -> None:
    long = {
        str(path.relative_to(_ROOT)): count
        for path in _tracked()
        if path.suffix == ".py" and (count := path.read_text().count("\n")) > _LONGEST
    }
    assert long == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    nothing = {"utils", "util", "helpers", "helper", "common", "misc"}
    named = [str(path.relative_to(_ROOT)) for path in _tracked() if path.stem in nothing]
    assert not named, "\n".join(named)


_BARE = {
    "check": r"#\s*(?:noqa|type:\s*ignore|pragma:)(?::\s*[A-Z0-9, ]+|\[[a-z, -]+\])?(?!.*\w{3})",
    "formatter": r"#\s*fmt:\s*(?:skip|off|on)\b(?!.*\w{3})",
    "exception": r"\bexcept\b[^\n#]*:[ \t]*\n\s*(?:pass|continue|\.\.\.)[ \t]*$",
    "exception of any kind": r"suppress\((?:Base)?Exception\):(?!.*\w{3})",
    "test": r"pytest\.(?:skip|xfail)\((?!\s*f?\"\w)|pytest\.mark\.(?:skip|skipif|xfail)\b(?!\([^)]*reason=)",
    "missing library": r"pytest\.importorskip\((?![^)]*reason=)",
}
"""What is silenced without a word beside it."""


@pytest.mark.parametrize("what", _BARE)
def test_what_is_silenced_has_its_reason_beside_it(what: str) -> None:
    bare = re.compile(_BARE[what], re.MULTILINE)
    found = []
    for path in _tracked():
        if path.suffix == ".py":
            text = path.read_text()
            places = (text.count("\n", 0, hit.start()) + 1 for hit in bare.finditer(text))
            found += [f"{path.relative_to(_ROOT)}:{line}" for line in places]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("check", "x = 1  # no" + "qa: N818"),
        ("check", "x = 1  # type: ig" + "nore[misc]"),
        ("check", "x = 1  # no" + "qa"),
        ("formatter", ")  # fmt: " + "skip"),
        ("exception", "except OSError:\n    " + "pass"),
        ("exception", "    except (A, B) as error:\n        " + "continue"),
        ("exception of any kind", "with contextlib.suppress(" + "Exception):"),
        ("test", "@pytest." + "mark.skip"),
        ("test", "@pytest." + "mark.skipif(sys.platform == 'x')"),
        ("test", "pytest." + "skip()"),
        ("missing library", "pytest." + "importorskip('x')"),
    ],
)
def test_a_bare_one_would_be_found(what: str, line: str) -> None:
    assert re.search(_BARE[what], line, re.MULTILINE)
