"""The page of all settings, of the service and of the node agent, made from their models.

Never: a word that is not in a model, but for the headings.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from extender.settings import PREFIX, SettingDoc, Settings, describe
from extender.telemetry.agent.settings import AGENT_PREFIX, AgentSettings

HEAD = """\
# Settings

Made by `berth config docs` from `extender/settings/` and `extender/telemetry/agent/settings.py`; change it
there.

`berth serve --config FILE` reads one YAML file. Every setting can also be given by its variable, which wins
over the file; lists and mappings are then written as JSON. Without a file and variables the defaults below
hold. Unknown keys are errors, and so are unknown variables of this form. `berth config check FILE` names each
fault with its line.
"""


AGENT = """
# The node agent

`berth agent --config FILE` reads its own file in the same way; `berth config check --agent FILE` looks at it.
"""

COLUMNS = "\n| setting | variable | type | default | meaning |\n|---|---|---|---|---|\n"


def render() -> str:
    """The page, in Markdown."""
    agent = "".join(map(_row, describe(AgentSettings, AGENT_PREFIX)))
    return HEAD + "".join(_sections()) + AGENT + COLUMNS + agent


def _sections() -> Iterator[str]:
    for section, settings in itertools.groupby(
        describe(Settings, PREFIX), key=lambda doc: doc.key.split(".")[0]
    ):
        yield f"\n## {section}\n{COLUMNS}"
        for doc in settings:
            yield _row(doc)


def _row(doc: SettingDoc) -> str:
    cells = (f"`{doc.key}`", f"`{doc.variable}`", doc.type, doc.default, doc.text)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
