"""What we believe: kernels, means, likelihoods, layers, the deep GP."""
