"""The command line: what people type, and how answers look in a terminal.

Never: the making of what a command needs. `__main__` hands in functions that do the work.
"""
