"""The tree of tests mirrors the rooms: who looks for a module's tests knows where they are."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = _ROOT / "extender"
_ROOMS = {path.name for path in _PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
_MODULES = {path.stem for path in _PACKAGE.glob("*.py")} - {"__init__"}
# Folders of tests that belong to no room: real control planes, the oracle, deploy/, loadtest/ and contracts.
_BESIDE = {"contract", "controlplane", "deploy", "endtoend", "fake_nvml", "loadtest", "oracle"}
# Has no behaviour of its own: endtoend and deploy run what it builds.
_WITHOUT_TESTS = {"wiring"}


def _has_code(room: str) -> bool:
    return any(path.name != "__init__.py" for path in (_PACKAGE / room).rglob("*.py"))


def test_a_folder_of_tests_is_named_after_a_room() -> None:
    tests = _ROOT / "tests"
    folders = {path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py") if path.parent != tests}
    assert folders - _BESIDE - _ROOMS - _MODULES == set()


def test_a_room_with_code_has_tests() -> None:
    untested = {
        room for room in _ROOMS if _has_code(room) and not any((_ROOT / "tests" / room).rglob("test_*.py"))
    }
    assert untested - _WITHOUT_TESTS == set()
