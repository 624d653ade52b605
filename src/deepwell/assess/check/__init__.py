"""Tests of the sampler that a user can run: exact laws, simulated truths, agreement with NUTS."""
