"""SACRO-ML's attacks on three models of the same rows: scikit-learn's, ours without noise, ours with a guarantee.

SACRO-ML is the output checker of the UK's trusted research environments. It brings PyTorch and pandas and is no
dependency of dpsparse; give it an environment of its own:

    python -m venv sacro && sacro/bin/pip install sacroml==2.0.1 . && sacro/bin/python examples/sacro_attacks.py
"""

import contextlib
import importlib.util
import io
import logging
import math
import sys
import tempfile
import warnings
from dataclasses import fields
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from dpsparse import Domain, DPGradientClassifier
from dpsparse.datasets import make_sparse_classification

EPSILON, DELTA = 1.0, 1e-6


def write_domains_to_yaml() -> None:
    """SACRO-ML stores parameters as YAML and reads them back safely; PyYAML must be told what a Domain is."""
    import yaml

    def write(dumper, domain):
        facts = {f.name: getattr(domain, f.name) for f in fields(domain)}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in facts.items()}
        return dumper.represent_mapping("!Domain", plain)

    def read(loader, node):
        return Domain(**loader.construct_mapping(node, deep=True))

    yaml.add_representer(Domain, write)
    yaml.add_constructor("!Domain", read, Loader=yaml.SafeLoader)


def models() -> dict:
    """Few rows and many columns, so that a model without noise knows its rows by heart."""
    domain = Domain(classes=[0, 1], n_samples=300)
    return {
        "LogisticRegression(C=1e4)": LogisticRegression(C=1e4, max_iter=10_000),
        "DPGradientClassifier, epsilon inf": DPGradientClassifier(domain, epsilon=math.inf),
        f"DPGradientClassifier, epsilon {EPSILON:g}": DPGradientClassifier(
            domain, epsilon=EPSILON, delta=DELTA
        ),
    }


def attacked(model, X, y, folder: Path) -> dict[str, dict[str, float]]:
    """What the two membership attacks reach: they know the rows and ask which of them were trained on."""
    from sacroml.attacks.likelihood_attack import LIRAAttack
    from sacroml.attacks.target import Target
    from sacroml.attacks.worst_case_attack import WorstCaseAttack

    half = len(y) // 2
    target = Target(
        model=model,
        X_train=X[:half],
        y_train=y[:half],
        X_test=X[half:],
        y_test=y[half:],
        dataset_name="made up",
    )
    target.save(
        str(folder / "target")
    )  # parameters go through YAML, which some models do not survive
    Target().load(str(folder / "target"))
    found = {}
    for name, attack in {
        "worst case": WorstCaseAttack(output_dir=str(folder), write_report=False, n_reps=5),
        "LiRA": LIRAAttack(output_dir=str(folder), write_report=False, n_shadow_models=50),
    }.items():
        output = attack.attack(target)
        runs = output["attack_experiment_logger"]["attack_instance_logger"].values()
        found[name] = {
            key: float(np.mean([run[key] for run in runs])) for key in ("AUC", "Advantage")
        }
    return found


def main() -> None:
    if importlib.util.find_spec("sacroml") is None:
        print(
            "Skipped: sacroml is not installed. Its environment is described at the top of this file."
        )
        return
    write_domains_to_yaml()
    logging.disable(logging.CRITICAL)
    X, y = make_sparse_classification(n_samples=600, n_features=1_000, seed=0)
    X = X.toarray()
    # Members and others may be told apart by at most this much, by anybody: (e^eps - 1 + 2 delta)/(e^eps + 1).
    allowed = (math.exp(EPSILON) - 1 + 2 * DELTA) / (math.exp(EPSILON) + 1)
    print(f"{'':36}{'attack':12}{'AUC':>6}{'advantage':>11}{'allowed':>9}")
    for name, model in models().items():
        model.fit(X[:300], y[:300])
        promise = (
            f"{allowed:.2f}" if getattr(getattr(model, "privacy_", None), "proven", False) else "-"
        )
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            found = attacked(model, X, y, Path(folder))
        for attack, values in found.items():
            print(
                f"{name:36}{attack:12}{values['AUC']:6.2f}{values['Advantage']:11.2f}{promise:>9}"
            )
            name = ""


if __name__ == "__main__":
    sys.exit(main())
