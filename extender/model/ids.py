"""Names of things in the cluster."""

from __future__ import annotations

from typing import NamedTuple


class ObjectKey(NamedTuple):
    """A namespaced object."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PoolKey(NamedTuple):
    """A pool of devices: pool names are only unique within a driver."""

    driver: str
    pool: str
