"""Beyond the papers: how much each published flaw leaks, by the attacks of leaks.py."""

from _common import axes

from dpsparse.reproduce import Experiment


def configurations(quick):
    names = ("discarded_noise", "noisy_max_constant", "switching_support") if quick else (
        "labels_from_signs", "switching_support", "screening_scores", "discarded_noise",
        "noisy_max_constant", "undercharged_classes",
    )  # fmt: skip
    return [{"attack": name, "quick": quick, "mode": "published"} for name in names]


def trial(config, seed):
    """The attacks have seeds of their own: one trial each, the same at every run."""
    import leaks

    leak = getattr(leaks, config["attack"])(config["quick"])
    return [
        {
            "cell": {"paper": leak.paper, "leak": leak.name, "mode": mode},
            "claimed epsilon": leak.claimed,
            "refuted epsilon": refuted,
        }
        for mode, refuted in (("published", leak.refuted), ("proven", leak.refuted_proven))
    ]


def verdict(summary):
    def refuted(mode):
        pairs = [
            (summary.mean("refuted epsilon", mode, **c), summary.mean("claimed epsilon", mode, **c))
            for c in summary.cells
        ]
        return sum(found > claimed for found, claimed in pairs), len(pairs)

    (broken, tried), (proven, _) = refuted("published"), refuted("proven")
    return (
        f"{broken} of {tried} published versions leak more than they claim (99.9 % confidence); the same attack "
        f"refutes {proven} of the proven versions."
    )


def plot(summary, path):
    (axis,), save = axes(path, ylabel="epsilon")
    names = [c["leak"] for c in summary.cells]
    for shift, mode, metric, label in (
        (-0.27, "published", "claimed epsilon", "claimed"),
        (0.0, "published", "refuted epsilon", "refuted, published"),
        (0.27, "proven", "refuted epsilon", "refuted, proven"),
    ):
        values = [summary.mean(metric, mode, **c) for c in summary.cells]
        axis.bar([i + shift for i in range(len(names))], values, 0.27, label=label)
    axis.set_xticks(range(len(names)), [n.replace(" ", "\n") for n in names], fontsize=6)
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    save()


EXPERIMENTS = (
    Experiment(
        name="leaks",
        title="epsilon that an attacker refutes",
        configurations=configurations,
        trial=trial,
        trials=(1, 1),
        many=True,
        metrics={"claimed epsilon": "g", "refuted epsilon": ".2f"},
        claim="Every mechanism of the papers has the epsilon it states.",
        verdict=verdict,
        instead='The default `calibration="proven"`.',
        protocol=(
            "experiments/leaks.py, which also draws what the attacker sees (experiments/results/leaks.png). The noisy "
            "maximum of 004 is computed, not attacked: the cost of one step in units of what is charged."
        ),
        plot=plot,
    ),
)
