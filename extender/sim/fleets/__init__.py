"""Fleets that come with the package, as Kubernetes YAML."""
