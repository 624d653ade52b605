"""Studies: the paper, one command a claim."""
