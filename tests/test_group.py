"""Problems of one shape run as one program, and give what each gives alone."""

import numpy as np
import pytest
from test_fit import table

import deepwell
from deepwell.interfaces.fitting import fit_group

SHORT = {"preset": "quick", "burn_in": 30, "num_samples": 4, "spacing": 3, "num_inducing": 8}


@pytest.mark.parametrize("inference", ["sghmc", "dsvi"])
def test_a_group_gives_what_its_members_give_alone(inference):
    tables = [table(40, seed=s) for s in range(3)]
    together = fit_group(tables, [5, 6, 7], inference=inference, **SHORT)
    for (X, y), seed, model in zip(tables, (5, 6, 7), together, strict=True):
        alone = deepwell.fit(X, y, seed=seed, inference=inference, **SHORT)
        np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=2e-3)
        np.testing.assert_allclose([v for _, v in model.trace], [v for _, v in alone.trace], rtol=1e-3)
        assert (model.seed, model.num_rows, model.settings) == (seed, 40, alone.settings)


def test_tables_of_different_shapes_are_fitted_one_by_one():
    models = fit_group([table(40), table(70)], [0, 1], **SHORT)
    assert [model.num_rows for model in models] == [40, 70]
    X, y = table(70)
    np.testing.assert_array_equal(models[1].predict(X), deepwell.fit(X, y, seed=1, **SHORT).predict(X))


def test_tables_whose_minibatches_differ_are_not_one_program():
    """90 and 110 rows are padded to one shape, but at a batch size of 100 only the second has minibatches."""
    models = fit_group([table(90), table(110)], [0, 1], **SHORT, batch_size=100)
    X, y = table(110)
    alone = deepwell.fit(X, y, seed=1, **SHORT, batch_size=100)
    np.testing.assert_array_equal(models[1].predict(X), alone.predict(X))
