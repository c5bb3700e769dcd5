"""Planning: optimistic shortest paths, optimistic average rewards, and the fluid program."""
