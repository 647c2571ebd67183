"""
Accuracy to expect, before any data
===================================

You choose epsilon before you read the rows. `expected_accuracy` fits the estimator to made-up tables of the same shape, which costs nothing.
"""

# %%
import matplotlib.pyplot as plt

from dpsparse import Domain, DPGradientClassifier, expected_accuracy

model = DPGradientClassifier(Domain(row_norm=1.0, classes=[0, 1]))
budgets = [0.1, 0.3, 1.0, 3.0]
forecasts = {
    rows: expected_accuracy(model, rows, n_features=200, epsilon=budgets, reachable=0.9, repeats=3)
    for rows in (1_000, 4_000, 16_000)
}
print(forecasts[4_000])

# %%
# Ten times the rows allow about a tenth of the epsilon. If the curve at your epsilon is near the constant answer, do not fit.
fig, ax = plt.subplots()
ax.set_xscale("log")
ax.set_xticks(budgets, budgets)
ax.set_xlabel("epsilon")
for (rows, forecast), color in zip(
    forecasts.items(), ("tab:orange", "tab:green", "tab:blue"), strict=True
):
    ax.fill_between(budgets, forecast.low, forecast.high, color=color, alpha=0.18, linewidth=0)
    ax.plot(budgets, forecast.score, "o-", color=color, label=f"{rows:,} rows")
largest = forecasts[16_000]
ax.axhline(float(largest.without_privacy), color="gray", linestyle="--", label="without privacy")
ax.axhline(float(largest.constant), color="gray", linestyle=":", label="constant answer")
ax.set_title("Accuracy to expect, 200 columns")
ax.legend()
plt.show()
