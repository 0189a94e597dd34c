"""The counter: HTTP in, HTTP out. The shell is FastAPI; the verbs of kube-scheduler are raw routes within it.

Never: a decision. Verdicts come from `verbs`, views from a `ReadDesk`.
"""
