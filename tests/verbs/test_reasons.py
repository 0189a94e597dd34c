"""docs/reasons.md: complete and up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.allocator.prediction import Unpredicted
from extender.model.reason import Reason
from extender.verbs.reasons import reasons_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reasons.md"


def test_the_page_is_what_the_enumerations_say() -> None:
    assert PAGE.read_text("utf-8") == reasons_page(), (
        "write extender.verbs.reasons.reasons_page() to docs/reasons.md"
    )


@pytest.mark.parametrize("code", [*Reason, *Unpredicted])
def test_every_code_is_documented(code: str) -> None:
    assert f"`{code}`" in PAGE.read_text("utf-8")
