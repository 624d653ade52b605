"""How we learn: samplers and the ways to set hyperparameters."""
