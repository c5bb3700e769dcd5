"""The experiments of the paper: each figure or table is data (a sweep of runs) with an analysis that draws it."""
