"""Pictures show the numbers they are given."""

import numpy as np
from matplotlib.figure import Figure

from deepwell.data.scaling import Scaling
from deepwell.doors import plots
from deepwell.predict.class_probabilities import ClassProbabilities
from deepwell.predict.depth_comparison import DepthComparison
from deepwell.predict.mixture import Mixture
from deepwell.predict.slices import InputSlice, rows_along

X = np.linspace(0.0, 1.0, 5)


def test_a_slice_of_several_targets_shows_the_one_asked_for():
    means = np.stack([X, 10.0 + X**2], -1)[None]
    prediction = Mixture(means, np.zeros_like(means), np.full((1, 2), 0.25), Scaling(np.zeros(2), np.ones(2)), False)
    axes = Figure().subplots()
    plots.slice_bands(axes, InputSlice(X, prediction, "height", ("u", "v")), target=1)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 10.0 + X**2)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("height", "v")
    outer, inner = (band.get_paths()[0].vertices[:, 1] for band in axes.collections)
    np.testing.assert_allclose([outer.min(), outer.max()], [10.0 - 0.98, 11.0 + 0.98], atol=1e-3)
    np.testing.assert_allclose([inner.min(), inner.max()], [10.0 - 0.337, 11.0 + 0.337], atol=1e-3)


def test_a_slice_of_classes_shows_their_probabilities():
    probabilities = np.stack([X, 1.0 - X], -1)
    axes = Figure().subplots()
    found = InputSlice(X, ClassProbabilities(probabilities, np.zeros(5), ("up", "down")), "height", ("place",))
    plots.slice_bands(axes, found)
    np.testing.assert_array_equal([line.get_ydata() for line in axes.lines], probabilities.T)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["up", "down"]


def test_one_far_row_does_not_stretch_a_slice():
    table = np.column_stack([np.arange(1_000.0), np.zeros(1_000)])
    table[-1, 0] = 1e9
    rows = rows_along(table, 0)
    assert rows[-1, 0] < 1_000.0
    assert np.all(rows[:, 1] == 0.0)


def test_the_picture_of_depths_marks_the_shallowest_that_is_enough():
    rng = np.random.default_rng(0)
    scores = np.array([-1.0, -0.5, -0.499])[:, None] + 0.1 * rng.standard_normal((3, 50))
    found = DepthComparison((1, 2, 4), scores, "validation", (1.0,) * 3)
    axes = Figure().subplots()
    plots.depths(axes, found)
    (bars,) = axes.containers
    np.testing.assert_allclose(bars.lines[0].get_ydata(), found.difference)
    ends = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
    np.testing.assert_allclose(np.diff(ends)[:, 0], 4.0 * found.standard_error)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4"]
    marked = axes.lines[-1]
    assert (marked.get_xdata()[0], marked.get_label()) == (1, "shallowest sufficient depth")
