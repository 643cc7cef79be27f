"""Similar moments: what followed on them is told where there was enough to choose from, and only what was known."""

import numpy as np
import pytest

from models import StepWindow
from models.similar import NEAREST, followed, similar_moments
from models.situation import situation

DAY, AHEAD = 288, 15
WINDOWS = (StepWindow(1, 1), StepWindow(3, 9))
RESTLESS = np.abs(np.cumsum(np.random.default_rng(0).standard_normal((3, 10 * DAY)), axis=1) + 50).astype(np.float32)


def told(values: np.ndarray, origins: np.ndarray, ahead: int = AHEAD) -> tuple[np.ndarray, np.ndarray]:
    """Features of the origins, and of their windows."""
    seen = situation(values, origins, DAY)
    moments = similar_moments(seen, ahead)
    return moments.context, followed(seen, moments, WINDOWS)


def test_a_jagged_load_is_followed_by_what_followed_on_the_same_tooth() -> None:
    teeth = np.tile(np.arange(40, dtype=np.float32), 36)[None] + 1
    seen = situation(teeth, np.array([teeth.shape[1] - 11]), DAY)
    moments = similar_moments(seen, AHEAD)
    assert set((teeth[0, moments.bins.ravel()]).tolist()) == {30.0}
    np.testing.assert_allclose(followed(seen, moments, WINDOWS)[0, 0, 0], np.arcsinh(1 / seen.scale[0, 0]), rtol=1e-5)


@pytest.mark.parametrize("ahead", [AHEAD, DAY])
def test_many_origins_are_told_what_each_is_told_alone(ahead: int) -> None:
    origins = np.array([20, 60, 100, 400, 700, 2300, 2700])
    for each, together in zip(origins, np.moveaxis(told(RESTLESS, origins, ahead)[1], 1, 0), strict=True):
        alone = told(RESTLESS[:, : each + 1], np.array([each]), ahead)[1][:, 0]
        np.testing.assert_allclose(together, alone, atol=1e-5)


def test_nothing_is_told_where_there_is_little_to_choose_from() -> None:
    context, windows = told(RESTLESS, np.array([2 * NEAREST + AHEAD - 2, 2 * NEAREST + AHEAD - 1]))
    assert not context[:, 0].any()
    assert not windows[:, 0].any()
    assert (context[:, 1, 0] == 1).all()
