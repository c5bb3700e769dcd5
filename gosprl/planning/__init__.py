"""Optimistic planning: shortest paths, average rewards, the fluid program."""
