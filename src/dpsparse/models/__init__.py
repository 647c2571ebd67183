"""Model files: save, load, and what a file may claim."""
