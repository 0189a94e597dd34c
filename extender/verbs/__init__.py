"""filter, prioritize, preempt, bind, explain: functions of (request, snapshot, now); and what people see.

Never: I/O, a clock, a change of anything: a retry or a what-if is free.
"""
