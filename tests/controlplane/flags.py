"""The command line of each component of the control plane.

Owns which flags a test control plane needs and why. It starts nothing and writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ISSUER = "https://kubernetes.default.svc"


@dataclass(frozen=True, slots=True)
class Options:
    """How a control plane differs from the default one.

    Attributes:
        feature_gates: Gates by name, for all components.
        runtime_config: API versions served or not, such as ``{"resource.k8s.io/v1alpha3": True}``.
        watch_cache: Whether the API server answers watches and lists from its cache.
        users: Further user names with their groups; they authenticate by the token that ControlPlane.token
            returns, and may do what RBAC objects made by the test allow.
        apiserver_flags: Appended to kube-apiserver's; a flag given again wins.
        controller_manager_flags: Appended to kube-controller-manager's.
        etcd_flags: Appended to etcd's.
    """

    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    runtime_config: Mapping[str, bool] = field(default_factory=dict)
    watch_cache: bool = True
    users: Mapping[str, Sequence[str]] = field(default_factory=dict)
    apiserver_flags: Sequence[str] = ()
    controller_manager_flags: Sequence[str] = ()
    etcd_flags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Where one control plane keeps its files, and the loopback ports that it listens on."""

    folder: Path
    etcd_port: int
    peer_port: int
    apiserver_port: int
    manager_port: int

    @property
    def etcd_url(self) -> str:
        """Base URL of etcd."""
        return f"http://127.0.0.1:{self.etcd_port}"

    @property
    def url(self) -> str:
        """Base URL of the API server."""
        return f"https://127.0.0.1:{self.apiserver_port}"

    @property
    def authority(self) -> Path:
        """The PEM file that vouches for the API server's certificate; the API server makes both."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def tokens(self) -> Path:
        """The file of the users that authenticate by a token."""
        return self.folder / "tokens.csv"

    @property
    def account_key(self) -> Path:
        """The private key that service-account tokens are signed with."""
        return self.folder / "service-account.key"


def etcd(layout: Layout, options: Options) -> list[str]:
    """Return etcd's arguments."""
    peer = f"http://127.0.0.1:{layout.peer_port}"
    return [
        "etcd",
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={layout.etcd_url}",
        f"--advertise-client-urls={layout.etcd_url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        *options.etcd_flags,
    ]


def apiserver(layout: Layout, options: Options) -> list[str]:
    """Return kube-apiserver's arguments."""
    return [
        "kube-apiserver",
        f"--etcd-servers={layout.etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={layout.apiserver_port}",
        f"--cert-dir={layout.authority.parent}",
        f"--token-auth-file={layout.tokens}",
        "--authorization-mode=RBAC",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={layout.account_key}",
        f"--service-account-signing-key-file={layout.account_key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--endpoint-reconciler-type=none",  # endpoints of the loopback address are refused
        "--allow-privileged=true",
        # Told to end, it ends its watches at once; without this it waits a minute for its clients to do so.
        "--shutdown-watch-termination-grace-period=1s",
        f"--watch-cache={str(options.watch_cache).lower()}",
        *_switches("--runtime-config", options.runtime_config),
        *_switches("--feature-gates", options.feature_gates),
        *options.apiserver_flags,
    ]


def controller_manager(layout: Layout, options: Options, kubeconfig: Path) -> list[str]:
    """Return kube-controller-manager's arguments."""
    return [
        "kube-controller-manager",
        f"--kubeconfig={kubeconfig}",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={layout.account_key}",
        f"--root-ca-file={layout.authority}",
        # Nodes without kubelets would be tainted and their pods evicted.
        "--controllers=*,-node-lifecycle-controller,-node-ipam-controller",
        "--allocate-node-cidrs=false",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.manager_port}",
        f"--cert-dir={layout.folder / 'kube-controller-manager-certificates'}",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        *_switches("--feature-gates", options.feature_gates),
        *options.controller_manager_flags,
    ]


def scheduler(config: Path, certificates: Path, port: int, options: Options) -> list[str]:
    """Return kube-scheduler's arguments; probes and metrics are open to anybody on loopback."""
    return [
        "kube-scheduler",
        f"--config={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={certificates}",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        *_switches("--feature-gates", options.feature_gates),
    ]


def _switches(flag: str, switches: Mapping[str, bool]) -> list[str]:
    if not switches:
        return []
    return [f"{flag}=" + ",".join(f"{name}={str(on).lower()}" for name, on in switches.items())]
