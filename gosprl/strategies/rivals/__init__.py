"""Other strategies of the literature, for comparison."""
