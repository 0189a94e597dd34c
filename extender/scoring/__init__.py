"""The judges: each maps candidate nodes to floats 0..1; a policy weighs them; ranks make integers of the sum.

Never: a veto, devices beyond those predicted, I/O, a clock (`now` is passed in).
"""
