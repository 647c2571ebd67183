"""A fit tells how far it has come: on a terminal by itself, elsewhere one line if it takes long."""

import io
import sys
import time

import numpy as np
import pytest
from numba.core import event as numba_event

from dpsparse import Domain, DPGradientClassifier, DPLassoClassifier, DPTwoStageClassifier
from dpsparse.exceptions import ParameterError
from dpsparse.progress import FitProgress, counted, told_if_slow

X = np.random.default_rng(0).uniform(-1, 1, (5000, 5))
Y = (X[:, 0] > 0).astype(int)
DOMAIN = Domain(classes=[0, 1], row_norm=2.0, n_samples=5000)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch, is_terminal=True):
    """Called in the test itself: pytest puts its own stderr back between set-up and test."""
    screen = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("dpsparse.progress._PATIENCE", 0.0)
    monkeypatch.setattr("dpsparse.progress._PAUSE", 0.0)
    monkeypatch.setattr("dpsparse.progress._SILENCE", 0.0)
    return screen


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
@pytest.mark.parametrize(
    "model",
    [
        DPGradientClassifier(DOMAIN, random_state=0),
        DPLassoClassifier(DOMAIN, radius=2.0, n_iter=40, random_state=0),
        DPTwoStageClassifier(DOMAIN, n_nonzero=2, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_every_phase_is_told_once_if_asked(model, capsys):
    model.fit(X, Y)  # where compiling may be told
    capsys.readouterr()
    model.fit(X, Y)
    assert capsys.readouterr().err == ""  # not a terminal, not asked
    model.set_params(verbose=1).fit(X, Y)
    *lines, last = capsys.readouterr().err.splitlines()
    assert last.endswith(f": kept {model.n_nonzero_} of {model.coef_.size} weights")
    told = [line.split(": ")[1].rsplit(",", 1)[0] for line in lines]
    assert set(told) == {phase.name for phase in model.plan_.phases}


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
def test_a_terminal_sees_shares_of_a_phase_and_a_clean_line_after(monkeypatch):
    screen = terminal(monkeypatch)
    DPGradientClassifier(DOMAIN, random_state=0).fit(X, Y)
    shown = screen.getvalue()
    assert "gradients 100%" in shown
    assert shown.endswith("\r\x1b[K")
    DPGradientClassifier(DOMAIN, random_state=0, verbose=-1).fit(X, Y)
    assert screen.getvalue() == shown


@pytest.mark.parametrize("is_terminal", [True, False])
def test_compiling_is_announced_once_with_its_seconds(is_terminal, monkeypatch):
    screen = terminal(monkeypatch, is_terminal)
    with FitProgress("fit", 0):
        numba_event.start_event("numba:compile")
        numba_event.start_event("numba:compile")
    assert screen.getvalue().count("compiling") == 1
    assert screen.getvalue().endswith("compiled in 0 s; the code is kept\n")


def test_where_nobody_watches_a_long_run_says_one_line(monkeypatch):
    screen = terminal(monkeypatch, is_terminal=False)
    with FitProgress("audit", 0) as progress:
        progress("gradients", 0.2)
        progress("gradients", 0.4)
    assert screen.getvalue() == "audit: gradients 20%, 0 s\n"


def test_what_is_slow_is_told_where_nobody_watches(monkeypatch):
    screen = terminal(monkeypatch, is_terminal=False)
    with told_if_slow("reading"):
        time.sleep(0.2)
    assert screen.getvalue() == "reading ...\n"
    monkeypatch.setattr("dpsparse.progress._SILENCE", 60.0)
    with told_if_slow("reading"):
        pass
    assert screen.getvalue() == "reading ...\n"


def test_a_terminal_sees_what_goes_on_and_its_seconds(monkeypatch):
    screen = terminal(monkeypatch)
    with counted("reading"):
        pass
    assert screen.getvalue() == "reading ...\r\x1b[Kreading ... 0.0 s\n"


def test_verbose_is_a_whole_number():
    with pytest.raises(ParameterError, match="verbose"):
        DPGradientClassifier(DOMAIN, verbose="yes").fit(X, Y)
