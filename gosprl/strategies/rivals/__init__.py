"""Strategies from the literature, for comparison."""
