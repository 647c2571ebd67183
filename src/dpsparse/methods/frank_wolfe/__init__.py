"""Frank-Wolfe on the L1 ball: README.md beside this file says how it works."""
