"""Sources of samples: runs, files, frames, arrays, Minari data sets, models; each is read in batches."""
