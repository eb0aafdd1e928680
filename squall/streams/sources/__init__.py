"""Sources: files, folders and standard input, read in order, merged and reordered."""
