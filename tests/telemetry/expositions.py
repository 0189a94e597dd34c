"""Expositions as dcgm-exporter writes them: own texts, after its template and default counters."""

from __future__ import annotations

from collections.abc import Mapping

GPU = "GPU-00000001-0000-4000-8000-000000000001"
OTHER = "GPU-00000002-0000-4000-8000-000000000002"
DEFAULT: dict[str, object] = {
    "DCGM_FI_DEV_SM_CLOCK": 1980,
    "DCGM_FI_DEV_MEM_CLOCK": 2619,
    "DCGM_FI_DEV_MEMORY_TEMP": 40,
    "DCGM_FI_DEV_GPU_TEMP": 42,
    "DCGM_FI_DEV_POWER_USAGE": "95.500000",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 600000,
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 0,
    "DCGM_FI_DEV_GPU_UTIL": 70,
    "DCGM_FI_DEV_MEM_COPY_UTIL": 20,
    "DCGM_FI_DEV_ENC_UTIL": 0,
    "DCGM_FI_DEV_DEC_UTIL": 0,
    "DCGM_FI_DEV_XID_ERRORS": 0,
    "DCGM_FI_DEV_FB_FREE": 60000,
    "DCGM_FI_DEV_FB_USED": 21000,
    "DCGM_FI_DEV_FB_RESERVED": 559,
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": 0,
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": 1,
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": 2,
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0,
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": 0,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "0.650000",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "0.100000",
    "DCGM_FI_PROF_DRAM_ACTIVE": "0.250000",
}


def row(uuid: str = GPU, hostname: str = "Hostname", node: str = "n1", **extra: str) -> str:
    """The labels of one device, in the exporter's order."""
    labels = {
        "gpu": "1",
        "UUID": uuid,
        "pci_bus_id": "00000000:40:00.0",
        "device": "nvidia1",
        "modelName": "NVIDIA H100 80GB HBM3",
        **{k: v for k, v in extra.items() if k.startswith("GPU_I")},
        hostname: node,
        "DCGM_FI_DRIVER_VERSION": "535.129.03",
        **{k: v for k, v in extra.items() if not k.startswith("GPU_I")},
    }
    return ",".join(f'{k}="{v}"' for k, v in labels.items())


def exposition(rows: Mapping[str, Mapping[str, object]]) -> str:
    """The text for label rows and their metrics."""
    names = list(dict.fromkeys(name for metrics in rows.values() for name in metrics))
    lines: list[str] = []
    for name in names:
        lines += [f"# HELP {name} As of the exporter (in °C).", f"# TYPE {name} gauge"]
        lines += [
            f"{name}{{{labels}}} {metrics[name]}" for labels, metrics in rows.items() if name in metrics
        ]
    return "\n".join(lines) + "\n"
