"""HTTP: the doors for programs that do not speak AHP."""
