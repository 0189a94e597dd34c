"""The page of all settings, made from the model.

Never: a word that is not in the model, but for the heading.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from extender.settings import SettingDoc, describe

HEAD = """\
# Settings

Made from `extender/settings.py` by `berth config docs`; change it there.

`berth serve --config FILE` reads one YAML file. Every setting can also be given by its variable, which wins
over the file; lists and mappings are then written as JSON. Without a file and variables the defaults below
hold. Unknown keys are errors, and so are unknown variables of this form. `berth config check FILE` names each
fault with its line.
"""


def render() -> str:
    """The page, in Markdown."""
    return HEAD + "".join(_sections())


def _sections() -> Iterator[str]:
    for section, settings in itertools.groupby(describe(), key=lambda doc: doc.key.split(".")[0]):
        yield f"\n## {section}\n\n| setting | variable | type | default | meaning |\n|---|---|---|---|---|\n"
        for doc in settings:
            yield _row(doc)


def _row(doc: SettingDoc) -> str:
    cells = (f"`{doc.key}`", f"`{doc.variable}`", doc.type, doc.default, doc.text)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
