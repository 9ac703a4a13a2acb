"""Wire shapes of AHP 0.3.0."""
