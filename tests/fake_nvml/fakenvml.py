"""Builds the fake libnvidia-ml.so.1 and writes its state file (by rename, so that callers may be running)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
CFLAGS: Final = (
    *("-shared", "-fPIC", "-O2", "-fvisibility=hidden", "-pthread"),
    *("-Wall", "-Wextra", "-Werror", "-Wl,-soname,libnvidia-ml.so.1"),
)
LINKS: Final = 18
Value = str | int

H100: Final[Mapping[str, Value]] = {
    "gpu*.name": "NVIDIA H100 80GB HBM3",
    "gpu*.arch": 9,
    "gpu*.brand": 18,
    "gpu*.cc_major": 9,
    "gpu*.cc_minor": 0,
    "gpu*.serial": "1562821083900",
    "gpu*.mem_total": 85520809984,
    "gpu*.mem_reserved": 570163200,
    "gpu*.mem_used": 0,
    "gpu*.util_gpu": 0,
    "gpu*.util_mem": 0,
    "gpu*.temp": 34,
    "gpu*.power_mw": 95000,
    "gpu*.power_limit_mw": 700000,
    "gpu*.pstate": 0,
    "gpu*.persistence": 1,
    "gpu*.clock.1": 1980,
    "gpu*.clock.2": 2619,
    "gpu*.throttle": 1,
    "gpu*.ecc": 1,
    "gpu*.ecc_pending": 1,
    "gpu*.ecc_cor_vol": 0,
    "gpu*.ecc_cor_agg": 0,
    "gpu*.ecc_unc_vol": 0,
    "gpu*.ecc_unc_agg": 0,
    "gpu*.remap_cor": 0,
    "gpu*.remap_unc": 0,
    "gpu*.remap_pending": 0,
    "gpu*.remap_failed": 0,
    "gpu*.mig": 0,
    "gpu*.mig_pending": 0,
    "gpu*.mig_max": 7,
    "gpu*.numa": 0,
    "gpu*.event_types": "0x19f",
    "gpu*.fabric_state": 3,
    "gpu*.fabric_clique": 1,
    "gpu*.fabric_uuid": "7f000001-0000-4000-8000-0000000000aa",
    "gpu*.fabric_health": 426,
    "gpu*.fabric_summary": 1,
    "gpu*.field.230": 0,
    **{f"gpu*.nvlink_state.{link}": 1 for link in range(LINKS)},
}
# What a consumer card does not answer stays out: serial, ECC, row remapping, MIG, NVLink, fabric.
RTX4090: Final[Mapping[str, Value]] = {
    "gpu*.name": "NVIDIA GeForce RTX 4090",
    "gpu*.arch": 8,
    "gpu*.mem_total": 25757220864,
    "gpu*.mem_used": 0,
    "gpu*.mem_reserved": 300000000,
    "gpu*.util_gpu": 0,
    "gpu*.util_mem": 0,
    "gpu*.temp": 40,
    "gpu*.power_mw": 22000,
    "gpu*.power_limit_mw": 450000,
    "gpu*.throttle": 1,
    "gpu*.event_types": "0x18",
}


def build(folder: Path) -> Path:
    """Compile the library into `folder`; half a second."""
    library = folder / "libnvidia-ml.so.1"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, *CFLAGS, "-o", str(library), str(HERE / "fake_nvml.c")], check=True, timeout=60)
    return library


def gpu_uuid(index: int) -> str:
    return f"GPU-{index:08x}-0000-4000-8000-{index:012x}"


def mig_uuid(gpu: int, index: int) -> str:
    return f"MIG-{gpu:08x}-0000-5000-8000-{index:012x}"


class State:
    """The state file of one fake node. Every change is on disk before the method returns."""

    def __init__(self, path: Path, profile: Mapping[str, Value] = H100, gpus: int = 2) -> None:
        self.path = path
        self._sequence = 0
        self._values: dict[str, Value] = {
            "driver": "580.95.05",
            "nvml": "13.580.95.05",
            "cuda": 13000,
            "count": gpus,
            **profile,
        }
        for i in range(gpus):
            self._values |= self._identity(i)
        self.write()

    @staticmethod
    def _identity(index: int) -> dict[str, Value]:
        return {
            f"gpu{index}.uuid": gpu_uuid(index),
            f"gpu{index}.pci": f"00000000:{0x1A + 0x10 * index:02X}:00.0",
            f"gpu{index}.minor": index,
        }

    def write(self) -> None:
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text("".join(f"{key} = {value}\n" for key, value in self._values.items()))
        temporary.replace(self.path)

    def put(self, changes: Mapping[str, Value | None]) -> None:
        """Set keys; None takes a key away."""
        for key, value in changes.items():
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value
        self.write()

    def unload(self) -> None:
        """No driver: NVML_ERROR_DRIVER_NOT_LOADED at every call."""
        self.path.unlink()

    def gpus(self, count: int) -> None:
        """GPUs appear or vanish at the end of the list."""
        for i in range(count):
            self._values |= self._identity(i)
        self.put({"count": count})

    def xid(self, gpu: int, code: int, **extra: int) -> None:
        self._sequence += 1
        words = " ".join(f"{key}={value}" for key, value in extra.items())
        self.put({f"event.{self._sequence}": f"gpu={gpu} xid={code} {words}"})

    def mig(self, gpu: int, count: int, memory_mb: int = 9856) -> None:
        """Cut `gpu` into `count` instances of one slice (profile 19, starts 0, 1, ...)."""
        changes: dict[str, Value | None] = {
            f"gpu{gpu}.mig": 1,
            f"gpu{gpu}.mig_pending": 1,
            f"gpu{gpu}.mig_count": count,
            f"gpu{gpu}.util_gpu": "!3",
        }
        for m in range(count):
            changes |= {
                f"gpu{gpu}.mig{m}.uuid": mig_uuid(gpu, m),
                f"gpu{gpu}.mig{m}.name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
                f"gpu{gpu}.mig{m}.gi": 7 + m,
                f"gpu{gpu}.mig{m}.ci": 0,
                f"gpu{gpu}.mig{m}.placement": f"19,{m},1",
                f"gpu{gpu}.mig{m}.attr": f"16,1,1,0,1,0,1,1,{memory_mb}",
                f"gpu{gpu}.mig{m}.mem_total": memory_mb << 20,
                f"gpu{gpu}.mig{m}.mem_used": 0,
            }
        self.put(changes)

    def environment(self, library: Path, log: Path | None = None) -> dict[str, str]:
        """What a process needs in its environment to load the fake instead of a driver."""
        variables = {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_STATE": str(self.path)}
        return variables | ({"FAKE_NVML_LOG": str(log)} if log else {})
