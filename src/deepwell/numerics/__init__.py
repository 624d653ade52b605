"""Linear algebra, random numbers, pytrees, quadrature and compilation. Nothing here knows a model."""
