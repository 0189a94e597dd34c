"""Every setting of Berth: one frozen model, read from a YAML file and the environment.

The file is spelled in camelCase. Each setting can be given as BERTH_<SECTION>__<FIELD> (snake case in
capitals), which wins over the file. Unknown keys are errors. `docs/settings.md` is made from these modules.
Never: what the settings are used for, or a read of the environment on its own (it is passed in).
"""

from extender.settings.loading import PREFIX, SettingDoc, describe, load, load_model
from extender.settings.service import LeaderElectionSettings, ServerSettings, TlsSettings
from extender.settings.whole import Settings

__all__ = [
    "PREFIX",
    "LeaderElectionSettings",
    "ServerSettings",
    "SettingDoc",
    "Settings",
    "TlsSettings",
    "describe",
    "load",
    "load_model",
]
