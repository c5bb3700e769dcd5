"""Many copies of a system collect for one need: orders out, reports in, counted in the order of issue."""
