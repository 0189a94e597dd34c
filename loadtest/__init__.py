"""Berth under the calls of a kube-scheduler, on this machine only."""
