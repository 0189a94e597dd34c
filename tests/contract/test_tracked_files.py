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


def test_a_silenced_check_has_its_reason_beside_it() -> None:
    silenced = re.compile(r"#\s*(noqa: [A-Z0-9, ]+|type: ignore\[[a-z, -]+\])(?P<rest>.*)$")
    bare = []
    for path in _tracked():
        if path.suffix != ".py":
            continue
        above = ""
        for line in path.read_text().splitlines():
            hit = silenced.search(line)
            explained = above.strip().startswith("#")
            if hit is not None and not explained and not re.search(r"\w{3}", hit["rest"]):
                bare.append(f"{path.relative_to(_ROOT)}: {line.strip()}")
            above = line
    assert not bare, "\n".join(bare)


def test_a_skipped_test_has_its_reason_beside_it() -> None:
    mark = re.compile(r"pytest\." + r"mark\.(skip|xfail)\b(?!if)(?!\([^)]*reason=)")
    bare = [
        f"{path.relative_to(_ROOT)}: {hit[0]}"
        for path in _tracked()
        if path.suffix == ".py"
        for hit in mark.finditer(path.read_text())
    ]
    assert not bare, "\n".join(bare)
