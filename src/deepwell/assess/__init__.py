"""How good is it? Scores over splits, depths compared, reports, checks of the sampler."""
