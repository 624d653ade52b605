"""Answers from posterior samples: predictive distributions, their scores, diagnostics."""
