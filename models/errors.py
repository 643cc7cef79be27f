"""Errors of this package; every message names the series, the value and the remedy.

ModelError
├── ContractError   a model breaks the contract that all models keep (checks.py)
├── PanelError      the data is not a panel: mixed steps, infinite or negative demand, keys that do not match
└── QuestionError   the question has no answer: no steps, levels that do not ascend, an unknown model
"""


class ModelError(Exception):
    """Anything this package refuses."""


class ContractError(ModelError, AssertionError):
    """A model that breaks the contract of all models."""


class PanelError(ModelError, ValueError):
    """Data that is not a panel."""


class QuestionError(ModelError, ValueError):
    """A question that no forecast can answer."""
