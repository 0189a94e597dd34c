"""What the commands open: functions that do the work, built and handed in by `__main__`.

A command whose door is not there is not offered. Never: a default that does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from extender.model.device import DeviceFacts
from extender.settings import Settings
from extender.verbs.ports import ReadDesk

Devices = Sequence[tuple[str, DeviceFacts]]
"""Devices by "driver/pool/device"."""


@dataclass(frozen=True, slots=True)
class Doors:
    """The doors of the command line.

    Attributes:
        version: The version of the package.
        environ: The environment.
        console: Where answers go.
        complaints: Where faults go.
        serve: Runs the service until it is stopped.
        serve_bundled: Likewise on the fleet that comes with Berth, or on a made-up one of so many nodes.
        demo: Plays a workload against the bundled fleet; answers the exit status.
        desk_of_folder: A desk over the Kubernetes YAML in a folder or file.
        desk_of_cluster: A desk over the cluster that the settings name, once it is synced.
        devices_of_folder: The devices that the Kubernetes YAML in a folder or file publishes.
        devices_of_cluster: Likewise of the cluster.
        agent: Runs the node agent until it is stopped; the settings file may be None.
    """

    version: str
    environ: Mapping[str, str]
    console: Console
    complaints: Console
    serve: Callable[[Settings], None] | None = None
    serve_bundled: Callable[[Settings, int], None] | None = None
    demo: Callable[[Console], int] | None = None
    desk_of_folder: Callable[[Path], AbstractContextManager[ReadDesk]] | None = None
    desk_of_cluster: Callable[[Settings], AbstractContextManager[ReadDesk]] | None = None
    devices_of_folder: Callable[[Path], Devices] | None = None
    devices_of_cluster: Callable[[Settings], Devices] | None = None
    agent: Callable[[Path | None, Mapping[str, str]], None] | None = None
