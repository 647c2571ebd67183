"""Errors and warnings that say what to do; none of them ever quotes a private value."""


class DPSparseError(Exception):
    """Base of every error this library raises on purpose. `in_options` is the same text for the command line, where
    what to do is an option."""

    def __init__(self, text: object = "", *, in_options: str | None = None) -> None:
        super().__init__(text)
        self.in_options = str(text) if in_options is None else in_options


class DomainError(DPSparseError, ValueError):
    """A public bound is missing or impossible; the message names the argument to declare."""


class SchemaError(DPSparseError, ValueError):
    """The data does not have the promised form (NaN, wrong width); rows are never named."""


class NotNumericError(SchemaError, TypeError):
    """A cell is no number; also a TypeError, as scikit-learn's contract for estimators asks."""


class ParameterError(DPSparseError, ValueError):
    """A parameter is out of range; the message names it and the remedy."""


class CalibrationError(DPSparseError, ValueError):
    """No noise level meets the requested guarantee."""


class UnknownEventError(DPSparseError, TypeError):
    """The accountant was shown a mechanism it has no proof for, and refuses."""


class InternalError(DPSparseError, RuntimeError):
    """A check of the library's own arithmetic failed, which is a bug. Nothing was released; what was reserved stays
    reserved."""


class BudgetError(DPSparseError, RuntimeError):
    """The ledger refuses a reservation; nothing was spent."""


class LedgerError(DPSparseError, RuntimeError):
    """The ledger itself cannot be used: damaged, edited, sealed or not writable."""


class LedgerRolledBackError(LedgerError):
    """The ledger has forgotten entries that this process has seen: an older copy was restored."""


class ClusterError(DPSparseError, RuntimeError):
    """Workers are gone, gave no answer in time, or a task failed on them; what was reserved stays reserved."""


class SourceChangedError(ClusterError):
    """A part of the rows was loaded again and is not what it was."""


class ModelFileError(DPSparseError, ValueError):
    """A model file is damaged, foreign or of an unknown version."""


class NotPrivateWarning(UserWarning):
    """The fitted model carries no proven guarantee (seeded, published or noiseless)."""


class BudgetWarning(UserWarning):
    """Something spends more privacy budget than a reader may expect."""


class UnpaidFitsWarning(BudgetWarning):
    """Several fits in one process have no ledger; the message says what they spend together on the same rows."""
