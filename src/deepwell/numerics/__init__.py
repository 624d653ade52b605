"""Linear algebra, random numbers, compilation: no model in it."""
