"""The place of the leader's loop: close, drain, plan, write, release, open. No pod is gated yet."""
