"""The place of group identities, the joint planner and the plan's state machine; nothing is planned yet.

Never: a clock (`now` is passed in), I/O.
"""
