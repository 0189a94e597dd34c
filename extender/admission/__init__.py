"""What the leader does beside answering: quarantine, nudges, annotations that can't be used.

Later the loop that plans and releases gangs.
"""
