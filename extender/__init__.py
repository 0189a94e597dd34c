"""Berth: a kube-scheduler extender that places pods by live devices. docs/architecture.md draws its rooms."""
