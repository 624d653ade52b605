"""Doors to the outside: fitting, files, estimators, plots, progress."""
