"""The way in: settings, a table made ready, a fit, a fitted model."""
