"""A fleet without a cluster: manifests, a small API in memory, and a small kube-scheduler to go with it.

For the demo, for `berth serve` without a cluster, for what-ifs. Never: a claim to be kube-scheduler.
"""
