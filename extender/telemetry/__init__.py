"""The node agent, the receiver of its samples, and the readers of dcgm-exporter and Prometheus.

Never: judging what a reading means (that is `extender.inventory.health` and the judges).
"""
