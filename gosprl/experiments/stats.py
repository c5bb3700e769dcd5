"""Statistics of a few dozen runs: means, ratios and slopes, with 95 % intervals by the percentile bootstrap.

An interval is the range of the middle 95 % of the statistic over RESAMPLES samples drawn with replacement from the
runs; the runs of each algorithm and case are drawn independently. The generator has a fixed seed for each interval, so
the same runs give the same interval.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 2000
TAILS = (2.5, 97.5)  # per cent
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A statistic of the runs, and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return the value with its interval, as text."""
        return f"{number(self.value)} ({number(self.low)} to {number(self.high)})"


@dataclass(frozen=True)
class Line:
    """A least-squares line y = intercept + slope x."""

    slope: float
    intercept: float
    r2: float  # the share of the variance of y that it explains


def number(x: float) -> str:
    """Return a number as short text: 12,345, 253.1, 14.72, 0.871, 0.0123."""
    if not np.isfinite(x):
        return "n/a"
    size = abs(x)
    digits = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3 if size >= 0.1 or size == 0 else 4
    return f"{x:,.{digits}f}"


def bootstrap(statistic: Callable[..., Floats], *samples: ArrayLike) -> Estimate:
    """Return a statistic with its bootstrap interval.

    Parameters
    ----------
    statistic
        A function of one array [n, runs] for each sample, which returns [n].
    *samples
        Arrays [runs].
    """
    values, rng = [np.asarray(x, dtype=float) for x in samples], np.random.default_rng(0)
    drawn = [x[rng.integers(len(x), size=(RESAMPLES, len(x)))] for x in values]
    with np.errstate(divide="ignore", invalid="ignore"):  # a ratio to 0 is inf or nan, and confirms no claim
        low, high = np.percentile(statistic(*drawn), TAILS)
        return Estimate(float(statistic(*(x[None] for x in values))[0]), float(low), float(high))


def mean(x: ArrayLike) -> Estimate:
    """Return the mean of x [runs]."""
    return bootstrap(_mean, x)


def mean_of_cases(cases: Sequence[ArrayLike]) -> Estimate:
    """Return the mean over the cases of their means; the interval is for these cases, only runs are resampled."""
    return bootstrap(lambda *drawn: np.mean([_mean(x) for x in drawn], axis=0), *cases)


def quantile90(x: ArrayLike) -> float:
    """Return the smallest value that 90 % of the runs do not exceed: the paper's sample complexity at delta = 0.1."""
    return float(np.quantile(np.asarray(x, dtype=float), 0.9, method="inverted_cdf"))


def difference_of_means(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Return mean x - mean y."""
    return bootstrap(lambda a, b: _mean(a) - _mean(b), x, y)


def ratio_of_means(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Return mean x / mean y."""
    return bootstrap(lambda a, b: _mean(a) / _mean(b), x, y)


def spread_of_means(samples: Sequence[ArrayLike]) -> Estimate:
    """Return the largest of the means over the smallest."""

    def spread(*drawn: Floats) -> Floats:
        means = np.stack([_mean(x) for x in drawn])
        return np.asarray(means.max(axis=0) / means.min(axis=0))

    return bootstrap(spread, *samples)


def mean_ratio(
    x: Sequence[ArrayLike], y: Sequence[ArrayLike], statistic: Callable[[Floats], Floats] | None = None
) -> Estimate:
    """Return the geometric mean over the cases of statistic(x) / statistic(y); the statistic is the mean by default."""
    of = statistic or _mean
    return bootstrap(
        lambda *drawn: np.exp(
            np.mean([np.log(of(a) / of(b)) for a, b in zip(drawn[::2], drawn[1::2], strict=True)], 0)
        ),
        *(sample for pair in zip(x, y, strict=True) for sample in pair),
    )


def mean_ratio_of_sds(x: Sequence[ArrayLike], y: Sequence[ArrayLike]) -> Estimate:
    """Return the geometric mean over the cases of sd x / sd y."""
    return mean_ratio(x, y, _sd)


def line(x: ArrayLike, y: ArrayLike) -> Line:
    """Return the least-squares line through the points."""
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    slope = float(_slope(a, b[None])[0])
    rest = b - b.mean() - slope * (a - a.mean())
    total = float(((b - b.mean()) ** 2).sum())
    return Line(slope, float(b.mean()) - slope * float(a.mean()), 1 - float(rest @ rest) / total if total else 1.0)


def log_log_slope(x: ArrayLike, groups: Sequence[Sequence[ArrayLike]]) -> Estimate:
    """Return the slope of log y against log x, y the `mean_of_cases` of each group; 1 if y is proportional to x."""
    logs = np.log(np.asarray(x, dtype=float))
    return _of_means(lambda means: _slope(logs, np.log(means)), groups)


def r_squared(x: ArrayLike, groups: Sequence[Sequence[ArrayLike]]) -> Estimate:
    """Return the share of the variance of y that its line against x explains, y the `mean_of_cases` of each group."""
    points = np.asarray(x, dtype=float)
    centred = points - points.mean()

    def explained(means: Floats) -> Floats:
        y = means - means.mean(axis=1, keepdims=True)
        total = (y**2).sum(axis=1)
        return np.asarray(np.where(total > 0, (y @ centred) ** 2 / (centred @ centred) / np.maximum(total, 1e-300), 1))

    return _of_means(explained, groups)


def _of_means(statistic: Callable[[Floats], Floats], groups: Sequence[Sequence[ArrayLike]]) -> Estimate:
    """Return a statistic of the `mean_of_cases` of each group, a function of [n, groups]."""
    ends = np.cumsum([len(group) for group in groups]).tolist()

    def whole(*drawn: Floats) -> Floats:
        parts = (drawn[begin:end] for begin, end in zip([0, *ends], ends, strict=False))
        means = [np.mean([_mean(case) for case in part], axis=0) for part in parts]
        return statistic(np.stack(means, axis=1))

    return bootstrap(whole, *(case for group in groups for case in group))


def band(curves: Floats) -> tuple[Floats, Floats]:
    """Return the ends [T] of the interval of the mean at each time, of curves [runs, T]; whole curves are resampled."""
    n = len(curves)
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n
    low, high = np.percentile(weights @ curves, TAILS, axis=0)
    return low, high


def _mean(x: Floats) -> Floats:
    return np.asarray(x.mean(axis=-1))


def _sd(x: Floats) -> Floats:
    return np.asarray(x.std(axis=-1))


def _slope(x: Floats, y: Floats) -> Floats:
    """Return the least-squares slopes [n] of the rows of y [n, points] against x [points]."""
    centred = x - x.mean()
    return np.asarray(y @ centred / (centred @ centred))
