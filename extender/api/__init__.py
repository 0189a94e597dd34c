"""The letter formats: Kubernetes objects and extender messages as msgspec Structs, only the fields in use.

Python attributes are snake_case, the letters keep the wire's spelling (`rename="camel"`).
Unknown keys are skipped.
Never: behaviour beyond decoding and encoding, or a client library's models.
"""
