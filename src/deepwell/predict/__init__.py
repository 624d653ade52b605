"""What we can say: posteriors, predictive distributions, scores."""
