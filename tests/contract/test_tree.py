"""The tree of tests mirrors the rooms: who looks for a module's tests knows where they are."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_ROOMS = {
    path.name for path in (_ROOT / "extender").iterdir() if path.is_dir() and path.name != "__pycache__"
}
# Folders of tests that belong to no room: real control planes, the oracle, deploy/, loadtest/ and contracts.
_BESIDE = {"contract", "controlplane", "deploy", "fake_nvml", "oracle", "loadtest"}


def test_a_folder_of_tests_is_named_after_a_room() -> None:
    folders = {
        path.parent.relative_to(_ROOT / "tests").parts[0]
        for path in (_ROOT / "tests").rglob("test_*.py")
        if path.parent != _ROOT / "tests"
    }
    assert folders - _BESIDE - _ROOMS == set()


def test_a_room_with_code_has_tests() -> None:
    with_code = {
        room
        for room in _ROOMS
        if any(path.name != "__init__.py" for path in (_ROOT / "extender" / room).rglob("*.py"))
    }
    tested = {room for room in _ROOMS if any((_ROOT / "tests" / room).rglob("test_*.py"))}
    assert with_code - tested == set()
