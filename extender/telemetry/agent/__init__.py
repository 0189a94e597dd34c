"""The node agent: an exec'd reader that calls NVML, and a parent that never does.

    agent (asyncio) --ask--> reader (python -m extender.telemetry.agent.reader) --> libnvidia-ml.so.1
         |          <--answer, XIDs--
         +--> every replica, /sample, /metrics, /healthz

A wedged driver puts callers in uninterruptible sleep for ever, so all that can hang lives in the reader.
"""
