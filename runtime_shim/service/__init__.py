"""The translation service: server, work, workers, client, wire format.  May import `cache`."""
