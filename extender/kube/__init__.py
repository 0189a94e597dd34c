"""The letterbox: everything that reads from or writes to the API server.

Owns: transport, reflectors, discovery, the Lease and the writers. Never: cluster state; what it sees goes to
an `ObjectSink`, what it writes was decided elsewhere.
"""
