"""A linter for KubeSchedulerConfiguration: what goes wrong with an extender, and where the file asks for it.

The rules come from kube-scheduler 1.37 (config/v1/types.go, validation.go, extender.go, schedule_one.go).
Never: a file or a cluster; text in, findings out.
"""
