"""DSVI of a deep GP in GPyTorch: steps of Adam on the ELBO of a minibatch, one sample of the hidden layers, float32.

With ``tutorial`` each output of a layer has its own kernel and inducing inputs, as in GPyTorch's deep GP tutorial. With
``shared`` the outputs of a layer share them, as in deepwell.
"""

import sys
import time

import gpytorch
import numpy as np
import torch
from gpytorch.distributions import MultitaskMultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, LinearMean
from gpytorch.models.deep_gps import DeepGP, DeepGPLayer
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from linear_operator.operators import BlockDiagLinearOperator
from serve import serve, shape, table


class Layer(DeepGPLayer):
    """A whitened sparse GP layer."""

    def __init__(self, inputs, outputs, inducing, shared):
        batch = torch.Size([]) if outputs is None else torch.Size([outputs])
        own = torch.Size([]) if shared else batch
        Z = torch.randn(*own, inducing, inputs)
        strategy = VariationalStrategy(self, Z, CholeskyVariationalDistribution(inducing, batch_shape=batch))
        super().__init__(strategy, inputs, outputs)
        self.shared = shared
        self.mean_module = ConstantMean() if outputs is None else LinearMean(inputs)
        self.covar_module = ScaleKernel(RBFKernel(batch_shape=own, ard_num_dims=inputs), batch_shape=own)

    def __call__(self, inputs, *rest, **options):
        """Like ``DeepGPLayer``, but outputs that share a kernel share their inputs instead of repeating them."""
        if not self.shared or self.output_dims is None:
            return super().__call__(inputs, *rest, **options)
        if isinstance(inputs, gpytorch.distributions.Distribution):
            inputs = torch.distributions.Normal(inputs.mean, inputs.variance.sqrt()).rsample()
        latent = gpytorch.models.ApproximateGP.__call__(self, inputs)
        covariance = BlockDiagLinearOperator(latent.lazy_covariance_matrix, block_dim=-3)
        return MultitaskMultivariateNormal(latent.loc.transpose(-1, -2), covariance, interleaved=False)

    def forward(self, x):
        """Prior mean and covariance."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Deep(DeepGP):
    """A sequence of layers."""

    def __init__(self, depth, columns, width, inducing, shared):
        super().__init__()
        sizes = [columns] + [width] * (depth - 1)
        outputs = [width] * (depth - 1) + [None]
        self.layers = torch.nn.ModuleList(Layer(a, b, inducing, shared) for a, b in zip(sizes, outputs, strict=True))
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()

    def forward(self, x):
        """Apply the layers in order."""
        for layer in self.layers:
            x = layer(x)
        return x


def main():
    """Build, then serve."""
    started = time.perf_counter()
    depth, rows, columns, width, inducing, batch = shape()
    device = sys.argv[3] if len(sys.argv) > 3 else "cpu"
    torch.manual_seed(0)
    torch.set_num_threads(1)
    X, y = (torch.as_tensor(part, device=device) for part in table(rows, columns))
    model = Deep(depth, columns, width, inducing, sys.argv[2] == "shared").to(device)
    model.train()
    objective = gpytorch.mlls.DeepApproximateMLL(gpytorch.mlls.VariationalELBO(model.likelihood, model, rows))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    generator = np.random.default_rng(0)

    def run(count):
        with gpytorch.settings.num_likelihood_samples(1):
            for _ in range(count):
                index = torch.as_tensor(generator.integers(rows, size=batch), device=device)
                optimiser.zero_grad()
                loss = -objective(model(X[index]), y[index, 0])
                loss.backward()
                optimiser.step()
        if device != "cpu":
            torch.cuda.synchronize()

    versions = {"gpytorch": gpytorch.__version__, "torch": torch.__version__}
    serve(run, versions, time.perf_counter() - started)


if __name__ == "__main__":
    main()
