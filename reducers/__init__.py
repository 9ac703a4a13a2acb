"""Pure functions over the shapes: reduce, judge, and say what follows."""
