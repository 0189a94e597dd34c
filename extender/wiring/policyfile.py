"""The policy file: read at start, looked at again and again, swapped whole when it has changed.

A new file that can't be used keeps the old policy, and is named in the log once. The file's bytes are
compared, not its times: a ConfigMap is mounted by links whose times say little.
Never: what a policy means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path

import structlog
import yaml

from extender.model.errors import SettingsError
from extender.scoring.bench import Bench
from extender.scoring.policy import Policy, parse_policy
from extender.verbs.desk import Desk

BUNDLED = "default.yaml"
"""The policy that comes with the package, beside this module: the one of policies/."""


def load_policy(path: Path | None, bench: Bench) -> Policy:
    """Read a policy file; None: the one that comes with the package.

    Raises SettingsError that names the file and the field.
    """
    if path is None:
        return _parsed(files("extender.wiring").joinpath(BUNDLED).read_bytes(), Path(BUNDLED), bench)
    return _parsed(_read(path), path, bench)


class PolicyFile:
    """Keeps `desk.policy` in step with a file; `run` until cancelled."""

    def __init__(
        self,
        path: Path,
        desk: Desk,
        every: float,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`every`: seconds between two looks."""
        self._path = path
        self._desk = desk
        self._every = every
        self._sleep = sleep
        self._seen: bytes | None = None
        self._told = ""
        self._log = structlog.get_logger("extender.wiring")

    async def run(self) -> None:
        """Look again and again."""
        while True:
            self.look()
            await self._sleep(self._every)

    def look(self) -> bool:
        """Read the file; whether the desk has another policy now. A file is a few kilobytes: no thread."""
        try:
            content = _read(self._path)
            if content == self._seen:
                return False
            self._seen = content
            policy = _parsed(content, self._path, self._desk.bench)
        except SettingsError as error:
            if str(error) != self._told:
                self._told = str(error)
                self._log.error("the policy file can't be used; the policy stays as it was", fault=self._told)
            return False
        self._told = ""
        if policy == self._desk.policy:
            return False
        self._desk.policy = policy
        self._log.info("policy changed", file=str(self._path), policy=policy.metadata.name)
        return True


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path}: can't be read: {error}") from error


def _parsed(content: bytes, path: Path, bench: Bench) -> Policy:
    try:
        document = yaml.safe_load(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: can't be read: {error}") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: can't be read: {error}") from error
    if not isinstance(document, dict):
        raise SettingsError(f"{path}: a policy is a mapping")
    return parse_policy(document, bench.names, str(path))
