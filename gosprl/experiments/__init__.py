"""The experiments of the paper: every figure and table as data (a sweep) and an analysis that draws it."""
