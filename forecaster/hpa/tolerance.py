"""The band around 1.0 in which a usage ratio changes nothing (HPA rules §8)."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a ratio may stray from 1.0 in each direction, as ratios (0.1 is ten percent); both ends are inside.

    The edges are computed once, as the doubles `1.0 - down` and `1.0 + up`: 1.1 is inside a tolerance of 0.1 although
    `1.1 - 1.0` exceeds it.
    """

    up: float = 0.1
    down: float = 0.1
    lowest: float = field(init=False, repr=False, compare=False)
    highest: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lowest", 1.0 - self.down)
        object.__setattr__(self, "highest", 1.0 + self.up)

    def holds(self, ratio: float) -> bool:
        """Whether this ratio is close enough to 1.0 to keep the current replicas; NaN never is."""
        return self.lowest <= ratio <= self.highest


DEFAULT_TOLERANCE = Tolerance()
