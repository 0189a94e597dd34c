"""The import contracts of pyproject.toml hold, and each of them catches what it forbids."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_TOP = ["__main__"]
_EDGES = ["admission", "server", "kube", "telemetry", "sim"]
_SHARED = ["settings", "observability"]
_PURE = ["verbs", "gang", "allocator", "scoring", "selectors", "inventory", "model", "api"]
_ROOMS = [*_TOP, "wiring", "cli", *_EDGES, *_SHARED, *_PURE]

# Whom each room may import, as docs/architecture.md draws it: written here a second time, on purpose.
_BELOW_VERBS = set(_PURE) - {"verbs"}
_MAY = {
    "__main__": set(_ROOMS) - {"__main__"},
    "wiring": {*_EDGES, *_SHARED, *_PURE},
    "cli": {*_EDGES, *_SHARED, *_PURE},
    **{edge: {*_SHARED, *_PURE} for edge in _EDGES},
    **{shared: set(_PURE) for shared in _SHARED},
    "verbs": _BELOW_VERBS,
    "gang": {"allocator", "selectors", "inventory", "model", "api"},
    "allocator": {"selectors", "inventory", "model", "api"},
    "scoring": {"selectors", "inventory", "model", "api"},
    "selectors": {"inventory", "model", "api"},
    "inventory": {"model", "api"},
    "model": {"api"},
    "api": set[str](),
}
_EFFECTS = [
    *("asyncio", "time", "random", "threading", "logging", "concurrent", "multiprocessing", "subprocess"),
    *("socket", "secrets", "fastapi", "starlette", "uvicorn", "httpx", "aiohttp", "kubernetes"),
    *("prometheus_client", "structlog", "typer", "rich"),
]


def _lint(folder: Path, *contracts: str) -> tuple[int, str]:
    """Run the linter in a folder; returns its status and its words on one line."""
    only = [f"--contract={name}" for name in contracts]
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-logo", "--no-cache", *only],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.fixture
def rooms(tmp_path: Path) -> Path:
    """A copy of the contracts, with every room there and empty."""
    shutil.copy(_ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "extender"
    package.mkdir()
    (package / "__init__.py").touch()
    for room in _ROOMS:
        if room in {"__main__", "settings"}:
            (package / f"{room}.py").touch()
        else:
            (package / room).mkdir()
            (package / room / "__init__.py").touch()
    return tmp_path


def _plant(folder: Path, room: str, imports: list[str]) -> None:
    target = folder / "extender" / room
    module = target / "planted.py" if target.is_dir() else target.with_suffix(".py")
    module.write_text("".join(f"import {name}\n" for name in imports))


def _caught(text: str, room: str, imported: str) -> bool:
    return re.search(rf"extender\.{room}(\.planted)? -> {re.escape(imported)} ", text) is not None


def test_the_product_keeps_its_contracts() -> None:
    status, text = _lint(_ROOT)
    assert status == 0, text


def test_the_contracts_name_every_room_that_is_there() -> None:
    there = {path.stem for path in (_ROOT / "extender").iterdir() if not path.name.startswith("__")}
    assert there | {"__main__"} == set(_ROOMS)


@pytest.mark.slow
def test_what_the_picture_allows_is_allowed(rooms: Path) -> None:
    for room, others in _MAY.items():
        _plant(rooms, room, [f"extender.{other}" for other in sorted(others)])
    status, text = _lint(rooms)
    assert status == 0, text


@pytest.mark.slow
@pytest.mark.parametrize("room", _ROOMS)
def test_a_room_that_imports_what_it_may_not_is_caught(rooms: Path, room: str) -> None:
    forbidden = sorted(set(_ROOMS) - _MAY[room] - {room})
    if not forbidden:
        assert room == "__main__"
        return
    _plant(rooms, room, [f"extender.{other}" for other in forbidden])
    status, text = _lint(rooms)
    assert status == 1
    assert [other for other in forbidden if not _caught(text, room, f"extender.{other}")] == []


@pytest.mark.slow
def test_every_effect_is_caught_in_every_pure_room(rooms: Path) -> None:
    for room in _PURE:
        _plant(rooms, room, _EFFECTS)
    status, text = _lint(rooms, "pure")
    assert status == 1
    missed = [
        (room, effect)
        for room in _PURE
        for effect in _EFFECTS
        if f"extender.{room} is not allowed to import {effect}:" not in text
    ]
    assert missed == []


@pytest.mark.slow
def test_an_effect_reached_through_another_room_is_caught(rooms: Path) -> None:
    _plant(rooms, "model", ["asyncio"])
    _plant(rooms, "scoring", ["extender.model.planted"])
    status, text = _lint(rooms, "pure")
    assert status == 1
    assert "extender.scoring is not allowed to import asyncio:" in text


@pytest.mark.slow
def test_the_client_library_is_caught_outside_kube(rooms: Path) -> None:
    for room in ("admission", "cli", "observability", "server", "sim", "telemetry"):
        _plant(rooms, room, ["kubernetes.aio.client"])
    _plant(rooms, "kube", ["kubernetes.aio.client"])
    status, text = _lint(rooms, "letterbox")
    assert status == 1
    assert text.count("is not allowed to import kubernetes:") == 6


def test_a_new_room_without_a_place_is_caught(rooms: Path) -> None:
    (rooms / "extender" / "attic").mkdir()
    (rooms / "extender" / "attic" / "__init__.py").touch()
    status, text = _lint(rooms, "layers")
    assert status == 1
    assert "extender.attic" in text
