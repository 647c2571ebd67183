"""One folder per method: `defaults` (tuned numbers), `plan` (its price), `solve` (the algorithm), `estimator`."""
