"""What is written down about what happened: metrics, logs, the decision record, the lag of the event loop.

Never: a decision, or a default registry; everything is built by `__main__` and handed in.
"""
