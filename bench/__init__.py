"""Benches: figures and ratios beside their budgets. `make bench` runs them all."""
