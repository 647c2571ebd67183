"""The privacy card: self-contained, true to the model, readable by people."""

import math
import re
import shutil
import subprocess
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from dpsparse import Domain, DPGradientClassifier, Ledger
from dpsparse.accounting import Exponential, Gaussian, NonPrivate, Repeated, Sequence
from dpsparse.datasets import make_sparse_classification
from dpsparse.evaluation import Estimate
from dpsparse.report import privacy_card
from dpsparse.report.card import _verdict, how_good

X, Y = make_sparse_classification(400, 120)
DOMAIN = Domain(row_norm=1.0, classes=[0, 1], n_samples=400)


def fitted(**options):
    return DPGradientClassifier(DOMAIN, n_iter=3, n_nonzero=30, **options).fit(X, Y)


@pytest.fixture
def no_pictures(monkeypatch):
    """Drawing takes most of the time of a card; tests of its sentences leave that out."""
    monkeypatch.setattr("dpsparse.report.card.as_svg", lambda figure, label: "<svg></svg>")


class Checker(HTMLParser):
    """Tags are balanced and nothing is fetched from elsewhere."""

    VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        assert tag not in {"link", "script", "img", "iframe", "object", "embed", "base"}
        for name, value in attrs:
            if name in {"src", "href", "xlink:href", "action", "data"}:
                assert value.startswith("#"), f"{tag} {name}={value}"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if self.open and tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def text_of(page):
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert "@import" not in page
    assert not re.findall(r"url\((?!#)", page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    return " ".join(" ".join(checker.text).split())


def test_a_private_model():
    ledger = Ledger(epsilon=3.0, delta=1e-6, dataset="patients-2026")
    model = fitted(ledger=ledger)
    ledger.reserve(model.plan(5))
    page = privacy_card(model, title="model.json", ledger=ledger)
    text = text_of(page)
    for expected in (
        "Privacy card: model.json",
        "Differentially private",
        model.privacy_.headline,
        "factor of at most 2.72",
        "73.2 % certain",
        "n_samples=400 is public",
        str(model.plan_.phases[-1].event),
        "30 of 120 weights are not zero",
        "patients-2026",
        "reserved, counts as spent",
        ledger.head,
        "unit of privacy",
        "trust model",
    ):
        assert expected in text, expected
    assert page.count("<svg") == 1
    assert "Not private" not in text


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("options", [{"epsilon": math.inf}, {"random_state": 1}])
def test_an_unproven_model_gets_a_red_banner(options):
    if "random_state" in options:
        with pytest.warns(UserWarning, match="NOT private"):
            model = fitted(**options)
    else:
        model = fitted(**options)
    page = privacy_card(model)
    assert '<div class="banner bad">' in page
    text = text_of(page)
    assert "do not publish" in text
    assert "certain by looking" not in text


def test_names_are_escaped_and_weights_are_true():
    model = fitted()
    model.feature_names_ = tuple(f"<script>alert({j})</script>" for j in range(120))
    text = text_of(privacy_card(model, title="<img src=x>"))
    largest = int(np.argmax(np.abs(model.coef_[0])))
    assert f"<script>alert({largest})</script> {model.coef_[0, largest]:.4g}" in text


@pytest.mark.usefixtures("no_pictures")
def test_weights_within_their_noise_are_told():
    model = fitted()
    size = np.sort(np.abs(model.coef_[0]))[::-1]
    bar = float(norm.isf(0.025 / 120))  # pure noise is above it in one model of twenty
    model.drowned_ = None
    model.coef_noise_ = (size[4] + size[5]) / 2 / bar  # between the fifth and the sixth weight
    text = text_of(privacy_card(model))
    assert "5 of them are larger than 3.5 standard deviations" in text
    assert text.count("maybe noise") == 20


@pytest.mark.usefixtures("no_pictures")
def test_promised_numbers_are_rounded_up():
    """e^1.1 = 3.0042 and delta 1.4e-6: "at most 3" and "at most 1e-06" would be false."""
    text = text_of(privacy_card(fitted(epsilon=1.1, delta=1.41e-6)))
    assert "by a factor of at most 3.01, apart from a further probability of at most 1.5e-6" in text
    assert "more than 75.1 % certain" in text  # 0.75026...


@pytest.mark.usefixtures("no_pictures")
def test_many_classes_and_constant_models():
    rng = np.random.default_rng(0)
    domain = Domain(row_norm=1.0, classes=["a", "b", "c"], n_samples=400)
    model = DPGradientClassifier(domain, n_iter=2).fit(
        X, np.array(["a", "b", "c"])[rng.integers(0, 3, 400)]
    )
    assert "(a)" in text_of(privacy_card(model))
    model.coef_ = np.zeros_like(model.coef_)
    assert "0 of 360 weights" in text_of(privacy_card(model))


def test_events_in_words():
    assert str(Repeated(Gaussian(2.0, 1.0), 3)) == "3 x Gaussian, scale 2, sensitivity 1"
    both = Sequence((Exponential(0.5), NonPrivate()))
    assert str(both) == "exponential mechanism, eta 0.5; then no privacy at all"
    assert str(Sequence(())) == "nothing"


def test_notebook_views():
    model = DPGradientClassifier(DOMAIN, n_iter=3)
    plan = model.plan(5)
    for view in (plan._repr_html_(), plan.guarantee._repr_html_()):
        assert plan.guarantee.headline in text_of(view)
    assert "not fitted yet" in plan._repr_html_()
    assert plan.guarantee.headline not in model._repr_html_()
    model.fit(X, Y)
    assert model.privacy_.headline in model._repr_html_()
    assert model._repr_mimebundle_()["text/html"].endswith(model.privacy_._repr_html_())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="Debian's chromium is not installed")
@pytest.mark.parametrize("width", [375, 1200])
def test_fits_the_screen_in_a_real_browser(tmp_path, width):
    """No sideways scrolling; measured by the browser in a frame of that width."""
    ledger = Ledger(epsilon=3.0, delta=1e-6)
    model = fitted(ledger=ledger)
    model.feature_names_ = tuple(f"a_long_name_of_a_feature_{j}" for j in range(120))
    model.coef_noise_ = 0.1
    (tmp_path / "card.html").write_text(privacy_card(model, ledger=ledger))
    (tmp_path / "frame.html").write_text(
        f'<iframe id="f" src="card.html" style="width:{width}px;height:900px;border:0"></iframe><p id="r"></p>'
        "<script>f.onload = () => { const e = f.contentDocument.documentElement;"
        'r.textContent = "measured " + e.scrollWidth + " of " + e.clientWidth; }</script>'
    )
    flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking"
    done = subprocess.run(
        ["chromium", *flags.split(), "--disable-component-update", "--disable-sync", "--disable-quic",
         "--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}",
         "--virtual-time-budget=3000", "--dump-dom", f"file://{tmp_path}/frame.html"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    wide, seen = map(int, re.search(r"measured (\d+) of (\d+)", done.stdout).groups())
    assert wide <= seen <= width  # less the scroll bar


# ---- cautions and evaluation -----------------------------------------------------------------------


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("options", "word"), [({"epsilon": 12.0}, "says little"), ({"delta": 1 / 400}, "1/n")]
)
def test_a_weak_guarantee_is_amber(options, word):
    """Proven, and still too little: delta of 1/n or an epsilon above 10 is said wherever it is shown."""
    model = fitted(**options)
    page = privacy_card(model)
    assert '<div class="banner amber">' in page
    assert any(word in line for line in text_of(page).splitlines())
    assert word in str(model.plan_)
    assert word in str(model.privacy_)
    assert "#a86400" in model.privacy_._repr_html_()
    assert "#a86400" in model.plan_._repr_html_()
    assert word in str(model.privacy_.to_dict()["summary"]["cautions"])


@pytest.mark.usefixtures("no_pictures")
def test_a_strong_guarantee_is_green_and_no_guarantee_red():
    strong, none = fitted(), fitted(epsilon=math.inf)
    assert strong.privacy_.cautions == none.privacy_.cautions == ()
    assert '<div class="banner">' in privacy_card(strong)
    assert '<div class="banner bad">' in privacy_card(none)


def test_cautions_survive_the_file(tmp_path):
    from dpsparse import load, save

    model = fitted(delta=1 / 400)
    assert load(save(model, tmp_path / "m.json")).privacy_.cautions == model.privacy_.cautions


@pytest.mark.usefixtures("no_pictures")
def test_the_evaluation_is_a_section_of_the_card():
    from dpsparse import DPGradientRegressor, dp_evaluate
    from dpsparse.exceptions import ParameterError

    model = fitted(epsilon=3.0)
    report = dp_evaluate(model, X, Y, epsilon=11.0)
    page = privacy_card(model, evaluation=report)
    text = text_of(page)
    assert "How good the model is" in text
    assert "comes on top of" in text
    assert page.count('<div class="banner amber">') == 1  # that of the evaluation, not of the model
    assert f"{report.accuracy.value:.4g}" in text
    assert "comes on top of" not in privacy_card(model)
    other = DPGradientRegressor(Domain(target_bound=1.0), n_iter=2).fit(X, Y * 1.0)
    with pytest.raises(ParameterError, match="another model"):
        privacy_card(other, evaluation=report)


@pytest.mark.usefixtures("no_pictures")
def test_tune_evaluate_and_report_from_one_ledger():
    """The way of a whole project: one account pays for the search and its evaluation, the card shows both."""
    from dpsparse import DPSearchCV, dp_evaluate

    ledger = Ledger(epsilon=4.0, delta=1e-5)
    search = DPSearchCV(
        DPGradientClassifier(DOMAIN, n_iter=3),
        {"threshold": [0.0, 0.5]},
        epsilon=2.0,
        ledger=ledger,
    ).fit(X[:300], Y[:300])
    report = dp_evaluate(search, X[300:], Y[300:], epsilon=1.0, ledger=ledger)
    assert report.model == "DPGradientClassifier"
    text = text_of(privacy_card(search, evaluation=report, ledger=ledger))
    assert "How good the model is" in text
    assert "DPSearchCV(DPGradientClassifier)" in text
    assert "dp_evaluate" in text
    assert len(ledger.history()) == 2


# ---- labels, quality, plots ------------------------------------------------------------------------


@pytest.mark.usefixtures("no_pictures")
def test_the_order_of_the_labels_is_kept_and_said():
    from dpsparse import dp_evaluate

    labels = np.array(["nein", "ja"])
    domain = Domain(row_norm=1.0, classes=["nein", "ja"], n_samples=400)
    model = DPGradientClassifier(domain, n_iter=3, epsilon=50.0).fit(X, labels[Y])
    assert model.classes_.tolist() == ["nein", "ja"]
    agree = np.sign(model.decision_function(X)) == np.where(labels[Y] == "ja", 1, -1)
    assert agree.mean() > 0.55
    report = dp_evaluate(model, X, labels[Y], epsilon=50.0)
    text = text_of(privacy_card(model, evaluation=report))
    assert "Positive weights speak for: ja" in text
    assert "precision (of ja)" in text
    assert "are of: ja" in str(report)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.filterwarnings("ignore:.*NOT private")
def test_the_first_line_says_how_good_the_model_is():
    from dpsparse import dp_evaluate

    model = fitted(epsilon=20.0)
    text = text_of(privacy_card(model))
    assert "was not measured" in text
    model.coef_noise_ = 1e6
    assert "hardly better than a constant answer" in text_of(privacy_card(model))
    report = dp_evaluate(model, X, Y, epsilon=50.0)
    assert "ranks the right one higher in" in text_of(privacy_card(model, evaluation=report))
    coin = dp_evaluate(model, X, Y, epsilon=0.01, random_state=0)  # 400 rows are lost in its noise
    unknown = "perhaps no better than a constant answer, as its evaluation is too noisy to tell"
    assert unknown in text_of(privacy_card(model, evaluation=coin))


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.filterwarnings("ignore:.*NOT private")
def test_the_first_line_does_not_call_a_measured_model_unmeasured():
    """It did where no metric of the evaluation has a constant answer to compare with."""
    from dpsparse import dp_evaluate

    model = fitted(epsilon=20.0)
    report = dp_evaluate(model, X, Y, epsilon=50.0, metrics=["recall"])
    text = text_of(privacy_card(model, evaluation=report))
    assert "was not measured" not in text
    assert "no metric that compares it with a constant answer" in text


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.filterwarnings("ignore:.*NOT private")
def test_a_model_without_weights_is_called_a_constant():
    """A card said of it that its evaluation was too noisy to tell."""
    from dpsparse import dp_evaluate

    model = fitted(epsilon=20.0)
    model.coef_[:] = 0.0
    report = dp_evaluate(model, X, Y, epsilon=50.0)
    for evaluation in (None, report):
        text = text_of(privacy_card(model, evaluation=evaluation))
        assert "All weights are zero: every row gets the same answer." in text


@pytest.mark.usefixtures("no_pictures")
def test_a_card_shows_dates_as_dates_and_says_what_was_left_out():
    """Days since 1970 stood there, and a column that gave no feature was said to share columns."""
    from dpsparse.preprocessing import DPPipeline, DPTablePreparer

    days = np.datetime64("2020-01-01") + np.arange(2_000) % 300
    table = {"since": days, "plate": [f"B-{i}" for i in range(2_000)]}
    table["place"] = [f"{i}. Street" for i in range(2_000)]
    roles = DPTablePreparer({"since": "date"}, rest="auto")
    pipe = DPPipeline([("table", roles), ("model", DPGradientClassifier(DOMAIN))], epsilon=20.0)
    with pytest.warns(UserWarning, match="left out: plate, place"):
        pipe.fit(table, np.arange(2_000) % 2)
    text = text_of(privacy_card(pipe))
    assert re.search(r"released range 20\d\d-\d\d-\d\d to 20\d\d-\d\d-\d\d, brought", text)
    assert text.count("left out: no category is known to enough rows") == 2


@pytest.mark.usefixtures("no_pictures")
def test_a_card_with_the_ledger_of_another_data_set_says_so(tmp_path):
    from dpsparse.report import registry_entry

    mine, other = (Ledger(tmp_path / f"{k}.db", epsilon=3.0, delta=1e-6) for k in range(2))
    model = fitted(ledger=mine)
    for ledger, strange in ((mine, False), (other, True)):
        text = text_of(privacy_card(model, ledger=ledger))
        assert ("No reservation of this account has the plan of this model" in text) == strange
        entry = registry_entry(model, ledger=ledger)
        assert ("another account paid for it, or none" in entry) == strange


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.filterwarnings("ignore:.*NOT private")
def test_a_card_does_not_praise_a_model_by_an_r2_of_clipped_errors():
    """With a small --error-bound every model seemed to explain all of the variance."""
    from dpsparse import DPGradientRegressor, dp_evaluate

    model = DPGradientRegressor(Domain(target_bound=1.0), n_iter=2).fit(X, Y * 1.0)
    report = dp_evaluate(model, X, Y * 1.0, epsilon=math.inf, error_bound=0.05)
    assert report.r2.value > 0.9 > dp_evaluate(model, X, Y * 1.0, epsilon=math.inf).r2.value
    text = text_of(privacy_card(model, evaluation=report))
    assert "better than the mean" not in text
    assert "errors beyond 0.05 count as that" in text
    assert "can make R2 too large" in str(report)


def test_a_report_names_the_label_of_metrics_that_it_has():
    from dpsparse import dp_evaluate

    model = fitted(epsilon=20.0)
    assert "are of:" not in str(dp_evaluate(model, X, Y, epsilon=5.0, metrics=["auc"]))
    assert "are of:" in str(dp_evaluate(model, X, Y, epsilon=5.0, metrics=["recall"]))


def test_a_wide_interval_says_nothing_against_a_model():
    def said(low, high):
        return _verdict(Estimate(0.3, low, high), 0.0, "better than the mean", "the mean")

    assert said(0.2, 0.4) == "better than the mean"
    assert said(-0.1, 0.05) == "hardly better than the mean"
    assert said(-0.4, 0.7).startswith("perhaps no better than the mean")


@pytest.mark.usefixtures("no_pictures")
def test_a_weight_of_a_drowned_column_is_never_clear():
    from dpsparse.preprocessing import DPPipeline, DPTablePreparer
    from dpsparse.report.weights import largest_weights

    model = fitted()
    model.coef_noise_, model.drowned_ = 1e-9, None
    model.feature_names_ = tuple(f"c{j}" for j in range(120))
    name = largest_weights(model, 1)[0].name
    assert largest_weights(model, 30)[0].clear
    step = SimpleNamespace(missing_share_=np.array([1.0, 0.2]), feature_names_in_=[name, "other"])
    pipe = SimpleNamespace(model_=model, steps_=[("numbers", step)])
    shown = {w.name: w.clear for w in largest_weights(pipe, 30)}
    assert shown[name] is False
    table = {"age": np.random.default_rng(0).uniform(0, 90, 40), "size": np.arange(40.0)}
    pipe = DPPipeline(
        [
            ("table", DPTablePreparer({"age": "number", "size": "number"})),
            ("model", DPGradientClassifier(Domain(classes=[0, 1]))),
        ],
        epsilon=0.1,
    )
    with pytest.warns(UserWarning, match="rises above the noise"):
        pipe.fit(table, np.arange(40) % 2)
    pipe.model_.coef_noise_ = 1e-12
    pipe.model_.coef_ = np.ones_like(pipe.model_.coef_)
    drowned = [
        n
        for _, part, names in pipe.steps_[0][1].parts_
        for n, s in zip(names, part.missing_share_, strict=True)
        if s == 1
    ]
    cells = re.findall(
        r'class="name">([^<]+)</td>.*?class="tag[^"]*">([^<]+)<', privacy_card(pipe), re.DOTALL
    )
    assert drowned
    assert all(dict(cells)[name] == "maybe noise" for name in drowned)
    pytest.importorskip("pandas")
    frame = pipe.weights_frame()
    assert len(frame) == pipe.model_.n_nonzero_
    assert not frame.loc[drowned, "clear"].any()
    assert len(pipe.plot_weights(1).axes[0].get_yticklabels()) == 1


def test_a_column_that_drowned_inside_the_fit_is_never_clear(tmp_path):
    """The second column is empty: its scale is noise, whatever its weight is."""
    from dpsparse.models.files import load, save
    from dpsparse.report.weights import clear_weights, largest_weights

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice([-1.0, 1.0], 400), np.zeros(400)])
    y = (X[:, 0] > 0).astype(int)
    for n_samples in (None, 400):
        model = DPGradientClassifier(Domain(classes=[0, 1], n_samples=n_samples), epsilon=2.0)
        for _ in range(
            20
        ):  # the weight of the empty column is larger than its noise in one fit of three
            model.fit(X, y)
            assert 0 not in model.drowned_
            if 1 in model.drowned_:
                break
        model.coef_noise_ = np.array([1e-9, 1e-9])
        again = load(save(model, tmp_path / f"{n_samples}.json"))
        for each in (model, again):
            shown = {w.name: w.clear for w in largest_weights(each, 2)}
            assert shown == {"feature 0": True, "feature 1": False}
            assert clear_weights(each) == 1
        assert "more than a constant answer: 1 weight stands" in how_good(model, None)
        model.coef_noise_ = np.array([1e9, 1e9])
        assert "hardly better than a constant answer" in how_good(model, None)


def test_few_models_of_pure_noise_have_a_clear_weight():
    """The bar is for all weights at once: of 400 models of noise 5 % have one, and 8 % are five deviations away."""
    from dpsparse.report.weights import clear_weights

    rng = np.random.default_rng(1)
    found = 0
    for _ in range(400):
        noise = rng.uniform(0.1, 3.0, 30)
        coef = noise * rng.standard_normal(30)
        found += clear_weights(SimpleNamespace(coef_=coef, coef_noise_=noise)) > 0
    assert found < 0.105 * 400


def test_plots_and_frame_of_the_weights():
    pytest.importorskip("pandas")
    model = fitted()
    figure = model.plot_weights(5)
    assert len(figure.axes[0].get_yticklabels()) == 5
    assert "positive weights speak for: 1" in figure.axes[0].get_xlabel()
    assert len(model.weights_frame()) == 30


@pytest.mark.usefixtures("no_pictures")
def test_releases_stand_in_an_annex_at_the_end():
    text = text_of(privacy_card(fitted()))
    assert text.index("Annex: every release") > text.index("For the record")
