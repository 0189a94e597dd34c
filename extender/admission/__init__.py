"""What the leader does beside answering: quarantine, nudges; later the loop that plans and releases gangs."""
