"""Runs on disk: everything that a collection observed, in order, so that nothing is lost and others can check it."""
