"""Builds the objects that a command needs, each once, and hands them to one another.

With `__main__` the only code that knows all rooms. Never: behaviour of its own.
"""
