"""How good is a model? Scores over splits, comparison of depths, reports, checks of the sampler."""
