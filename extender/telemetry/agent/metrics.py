"""The agent's own metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class AgentMetrics:
    """Metrics on a registry of their own; never of devices (that is the receiver's matter)."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(f"berth_agent_{name}", text, labels, registry=self.registry)

        def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
            return Gauge(f"berth_agent_{name}", text, labels, registry=self.registry)

        self.readings = counter("readings_total", "Answers of the reader.")
        self.reading_seconds = Histogram(
            "berth_agent_reading_seconds",
            "From question to answer of the reader.",
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30),
            registry=self.registry,
        )
        self.reader_starts = counter("reader_starts_total", "Readers started.")
        self.reader_ends = counter("reader_ends_total", "Readers that ended, by why.", ("why",))
        self.reader_stuck = gauge("reader_stuck", "1 while a killed reader will not go.")
        self.driver_state = gauge("driver_state", "1 for the state the driver is in.", ("state",))
        self.devices = gauge("devices", "Devices in the last sample.", ("state",))
        self.xids = counter("xids_total", "XID events heard.", ("xid",))
        self.event_error = gauge("event_error", "NVML code for which no XIDs are heard; 0: they are.")
        self.read_age = gauge("read_age_seconds", "Age of the last readings when they were last asked for.")
        self.sends = counter("sends_total", "Samples sent, by outcome.", ("outcome",))
        self.replicas = gauge("replicas", "Replicas that samples go to.")
