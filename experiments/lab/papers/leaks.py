"""Beyond the papers: each printed privacy statement, what it claims, what an attacker refutes, what is proven.

Step and whole are kept apart: a wrong constant of one step need not break the statement about the whole run.
So are an algorithm and a listing of it. "Attacked" is the largest epsilon refuted at 99.9 % confidence (0.0 where
the attack fails) unless it is an exact log-ratio; "proven" is an upper bound for the printed form as it stands,
computed by this library, infinite where none can exist. The same attack is run on our default.
"""

import math

import numpy as np

from dpsparse import (
    Domain,
    DPLassoClassifier,
    DPTransferClassifier,
    DPTransferRegressor,
    PrivateCount,
)
from dpsparse.accounting import Gaussian, Pure, Repeated, epsilon
from dpsparse.audit.blackbox import attack, publish
from dpsparse.audit.neighbours import replace_row
from dpsparse.audit.subject import Subject
from dpsparse.mechanisms.picks import noisy_max_log_probability
from dpsparse.published import (
    KhannaLuRaffLassoClassifier,
    RaffKhannaLuLassoClassifier,
    WangGuTransferClassifier,
    WangGuTransferRegressor,
)
from dpsparse.published.khanna_lu_raff_2023_screening import (
    adp_scale,
    published_sensitivity,
    screen,
    screening_scores,
)
from dpsparse.random import make_generator, two_sided_geometric
from dpsparse.sensitivity import raj_sensitivity, vertex_score_range
from lab.papers.common import axes
from lab.papers.one_run import one_run_epsilon
from lab.papers.sparsifier import listed_count, noisy_count
from lab.report import markdown_table

DELTA = 1e-6
AR, RP = "add-remove", "replace-one"
NOT_TRIED = math.nan


LASSO = {"published": RaffKhannaLuLassoClassifier, "proven": DPLassoClassifier}


def exact_sign():
    """The feature is drawn and its sign read off: a row with a feature of its own shows its label."""
    n, shared = 3000, 500
    rng = make_generator(1)
    X = np.zeros((n, n + shared))
    X[np.arange(n), np.arange(n)] = 1.0
    X[:, n:] = rng.random((n, shared)) < 0.02
    y = (rng.random(n) < 0.5).astype(int)
    domain = Domain(classes=(0, 1), n_samples=n)
    refuted = {}
    for mode in ("published", "proven"):
        model = LASSO[mode](domain, epsilon=0.1, n_iter=4 * n, radius=10.0, adjacency=RP)
        weights = Subject(model, n + shared).run(X, y, make_generator(2)).coef_.ravel()[:n]
        seen = weights != 0
        right = int(np.sum((weights[seen] > 0) == (y[seen] == 1)))
        # labels are random bits, and flipping one is a replaced row: the theorem of one run applies
        refuted[mode] = one_run_epsilon(n, int(seen.sum()), right, DELTA)
    yield "Raff, Khanna, Lu 2023, Alg. 1 and 2", RP, "whole", 0.1, dict(refuted), math.inf
    # the paper does not say which neighbours it means: a feature that only an absent row owns has gradient 0 and
    # never gets the sign of that row
    n, runs, y[0] = 200, 300, 1
    tables = [(X[start:n], y[start:n]) for start in (0, 1)]
    for mode in ("published", "proven"):
        model = LASSO[mode](
            Domain(classes=(0, 1), n_samples=n), epsilon=0.1, n_iter=10 * n, radius=10.0,
            adjacency=AR,
        )  # fmt: skip
        subject, rng = Subject(model, X.shape[1]), make_generator(9)
        moved = [
            np.array([[subject.run(*table, rng).coef_.flat[0] > 0.0] for _ in range(runs)], float)
            for table in tables
        ]
        refuted[mode] = attack(*moved, DELTA).epsilon
    yield "Raff, Khanna, Lu 2023, Alg. 1 and 2", AR, "whole", 0.1, dict(refuted), math.inf


def switching_support():
    """The teacher's support flips with one row; with a ridge (Theorem 4.3) and without (Corollary 4.7)."""
    m, runs = 500, 300
    unit = np.eye(2)
    X = np.repeat(unit, (m + 1, m), axis=0)
    pair = replace_row(X, np.ones(2 * m + 1, int), 0, unit[1], 1, "m+1 against m")
    common = {"n_nonzero": 1, "adjacency": RP}
    public = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 2))
    for statement, printed, ridge, own, facts in (
        ("Theorem 4.3", WangGuTransferClassifier, 0.1, DPTransferClassifier, {"classes": (0, 1)}),
        ("Corollary 4.7", WangGuTransferRegressor, 0.0, DPTransferRegressor, {"target_bound": 1.0}),
    ):
        refuted = {}
        domain = Domain(n_samples=2 * m + 1, **facts)
        for mode, model in (
            ("published", printed(domain, ridge=ridge, n_public=50, **common)),
            ("proven", own(domain, public_X=public, **common)),
        ):
            subject = Subject(model, 2)
            both = (
                publish(subject, pair.X, pair.y, runs, 7),
                publish(subject, pair.X2, pair.y2, runs, 8),
            )
            refuted[mode] = attack(*both, DELTA).epsilon
        yield f"Wang, Gu 2020, {statement}", RP, "whole", 1.0, refuted, math.inf


def screening_step():
    """O(1/n) is claimed for a score that one row moves by O(1/sqrt n): all rows have x = 1, y = r, and w = r.

    One row with residual 2r opens the gap: the first paper replaces a row (x = -1, y = r, its targets stay), the
    sequel adds one (x = 1, y = -r). Either way the sum of gradients is 2r.
    """
    radius, n, runs = 1.0, 100_000, 4000
    facts = {"radius": radius, "smoothness": 1.0, "strong_convexity": 1.0, "rescaled": False}
    for statement, adjacency, more in (
        ("Khanna, Lu, Raff 2023 (screening), Eq. (2)", RP, 0),
        ("Anonymous sequel (screening), Theorem 1", AR, 1),
    ):
        scores = [
            float(
                screening_scores(
                    np.array([residual]), np.array([radius]), radius * math.sqrt(rows),
                    np.array([math.sqrt(rows)]), **facts,
                )[0]
            )
            / n
            for residual, rows in ((0.0, n), (2.0 * radius, n + more))
        ]  # fmt: skip
        claimed = published_sensitivity("squared", radius, n)
        true = raj_sensitivity(
            feature_bound=1.0, slope_bound=2.0, n_samples=n, adjacency=adjacency, **facts
        ).value
        refuted, proven = {}, math.inf
        for mode, sensitivity in (("published", claimed), ("proven", true)):
            scale = adp_scale(sensitivity, 1.0, DELTA, 1)
            rng = make_generator(3)
            drops = [
                np.array([[len(screen(np.array([score]), "adp", scale, rng))] for _ in range(runs)], float)
                for score in scores
            ]  # fmt: skip
            refuted[mode] = attack(*drops, DELTA).epsilon
            if mode == "published":
                proven = epsilon(Gaussian(scale, true), DELTA)
        yield statement, adjacency, "one step", 1.0, refuted, proven


def counts(runs=4000):
    """Algorithm 2 adds noise to the count; the listing of Appendix B (line 58) discards it again."""
    p = 100
    rule = PrivateCount(10, 20, epsilon=0.05)

    def refuted(release):
        rng = make_generator(4)
        tables = [
            np.array([[release(count, rng)] for _ in range(runs)], float) for count in (12, 13)
        ]
        return attack(*tables, 0.0).epsilon

    ours = refuted(
        lambda count, rng: rule.kept(rule.clipped(count) + two_sided_geometric(rng, rule.scale), p)
    )
    listed = refuted(lambda count, rng: listed_count(count, 10, 20))
    printed = refuted(lambda count, rng: noisy_count(count, p, 0.05, rng))
    name = "Khanna, Lu, Raff 2023 (Sparsifier)"
    yield f"{name}, Alg. 2, count (p = 100)", AR, "one step", 0.05, {
        "published": printed, "proven": ours
    }, 0.05  # fmt: skip
    yield f"{name}, Appendix B, listing", AR, "one step", 0.05, {
        "published": listed, "proven": ours
    }, math.inf  # fmt: skip


def noisy_max(n_gaps=31):
    """Lap(D/eps') noisy max costs 2 eps' a step where eps' is charged; the whole is another matter."""
    step = 0.1
    laplace, gumbel = [], []
    for gap in np.linspace(0.0, 60.0, n_gaps):
        here, there = np.array([gap, -gap]), np.array([gap - step, step - gap])  # +-G, G moves by D
        laplace.append(noisy_max_log_probability(there, 1) - noisy_max_log_probability(here, 1))
        gumbel.append(_softmax_log(there, 1) - _softmax_log(here, 1))
    name = "Khanna, Lu, Raff 2023 (Sparsifier), Alg. 1"
    # exact, in units of eps'; ours charges 2 for its step
    yield f"{name}, in units of eps'", AR, "one step", 1.0, {
        "published": max(laplace) / step, "proven": max(gumbel) / step / 2.0
    }, 2.0  # fmt: skip
    for adjacency in (AR, RP):
        domain = Domain(classes=(0, 1), n_samples=10_000)
        plan = KhannaLuRaffLassoClassifier(
            domain, epsilon=1.0, delta=1e-4, n_iter=1000, adjacency=adjacency
        ).plan(100)
        untried = {"published": NOT_TRIED, "proven": NOT_TRIED}
        yield f"{name}, T = 1000", adjacency, "whole", 1.0, untried, plan.epsilon


def undercharged_classes():
    """Alg. 3: p selections a step, paid as K; a run of one step. What they cost in fact grows with p."""
    p, runs = 300_000, 200
    domain = Domain(classes=(0, 1, 2), n_samples=2)
    X, y = np.zeros((2, p)), np.array([0, 1])
    X2, y2 = np.vstack([X, np.ones(p)]), np.append(y, 2)
    push = np.array([-1.0, -1.0, 2.0]) / 3.0  # of a row of class 2 at w = 0
    refuted = {}
    for mode, kind in (("published", KhannaLuRaffLassoClassifier), ("proven", DPLassoClassifier)):
        model = kind(domain, delta=DELTA, n_iter=1, radius=1.0, fit_intercept=False)
        if mode == "published":
            kappa = model.plan(p).parameters["kappa"]
            cost = vertex_score_range(kappa, 1.0, 1.0, AR).value  # of one selection
        subject, votes = Subject(model, p), []
        for seed, table in ((5, (X, y)), (6, (X2, y2))):
            rng = make_generator(seed)
            sums = [push @ subject.run(*table, rng).coef_.sum(axis=1) for _ in range(runs)]
            votes.append(np.array(sums)[:, None])
        refuted[mode] = attack(*votes, DELTA).epsilon
    proven = epsilon(Repeated(Pure(cost), p), DELTA)
    name = f"Khanna, Lu, Raff 2023 (Sparsifier), Alg. 3, T = 1, p = {p:,}"
    yield name, AR, "whole", 1.0, refuted, proven


ATTACKS = {
    "exact sign": exact_sign, "switching support": switching_support, "screening step": screening_step,
    "counts": counts, "noisy max": noisy_max, "undercharged classes": undercharged_classes,
}  # fmt: skip


def _softmax_log(keys, pick):
    return float(keys[pick] - np.logaddexp.reduce(keys))


def configurations():
    return [{"attack": name, "mode": "published"} for name in ATTACKS]


def trial(config, seed, number):
    """The attacks have seeds of their own: one trial each, the same at every run."""
    return [
        {
            "cell": {"statement": statement, "adjacency": adjacency, "of": of, "mode": mode},
            "claimed": claimed,
            "attacked": refuted[mode],
            "proven": proven if mode == "published" else claimed,
        }
        for statement, adjacency, of, claimed, refuted, proven in ATTACKS[config["attack"]]()
        for mode in ("published", "proven")
    ]


def _rows(summary):
    for cell in summary.cells:
        yield (
            cell,
            {
                (mode, metric): summary.values(metric, mode, **cell)[0]
                for mode in ("published", "proven")
                for metric in ("claimed", "attacked", "proven")
            },
        )


def _state(found):
    claimed, attacked, proven = (found["published", m] for m in ("claimed", "attacked", "proven"))
    if attacked > claimed + 1e-9:
        return "refuted"
    return "holds" if proven <= claimed + 1e-9 else "open"


def table(summary):
    head = ["statement", "adjacency", "of", "claimed", "attacked, at least", "proven, at most"]
    head += ["", "ours, same attack"]
    lines = [
        [
            cell["statement"], cell["adjacency"], cell["of"], f"{found['published', 'claimed']:g}",
            _number(found["published", "attacked"]), _number(found["published", "proven"]), _state(found),
            _number(found["proven", "attacked"]),
        ]
        for cell, found in _rows(summary)
    ]  # fmt: skip
    return markdown_table(head, lines)


def _number(value):
    if math.isnan(value):
        return "not tried"
    return "nothing" if math.isinf(value) else f"{value:.3f}".rstrip("0").rstrip(".")


def facts(summary):
    states = [(cell["of"], _state(found)) for cell, found in _rows(summary)]
    ours = [found["proven", "attacked"] > found["proven", "claimed"] for _, found in _rows(summary)]
    return {
        "all": len(states), "whole": states.count(("whole", "refuted")), "steps": states.count(("one step", "refuted")),
        "holding": sum(state == "holds" for _, state in states), "unsure": sum(state == "open" for _, state in states),
        "ours": sum(ours),
    }  # fmt: skip


def plot(summary, path):
    (axis,), save = axes(
        path, height=4.4, xlabel="epsilon / claimed epsilon (0.01: the attack fails)", xscale="log"
    )
    rows = list(_rows(summary))
    for shift, mode, metric, label, marker in (
        (0.15, "published", "attacked", "attacked, as printed (at least)", ">"),
        (0.0, "published", "proven", "proven, as printed (at most)", "<"),
        (-0.15, "proven", "attacked", "attacked, ours (at least)", "x"),
    ):
        points = [
            (found[mode, metric] / found["published", "claimed"], i + shift)
            for i, (_, found) in enumerate(rows)
            if math.isfinite(found[mode, metric])
        ]
        axis.plot([max(x, 0.01) for x, _ in points], [y for _, y in points], marker, label=label)
    axis.axvline(1.0, color="black", lw=0.8)
    names = [f"{c['statement']}\n{c['of']}, {c['adjacency']}" for c, _ in rows]
    axis.set_yticks(range(len(rows)), names, fontsize=8)
    axis.invert_yaxis()  # in the order of the table
    axis.legend(fontsize=9, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    save()
