"""Collecting: the collector, what it records, what is needed, what comes of it."""
