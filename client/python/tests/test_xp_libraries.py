"""Libraries that take arrays of the standard give with xp what they give with NumPy. Each is tested where it is installed."""

import os

import numpy as np
import pytest

import warpline.xp as xp

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(200, 6))
Y = X @ RANDOM.normal(size=6)
CLASSES = (Y > 0).astype("i8")
OTHER = (X[:, 0] > 0).astype("i8")


@pytest.fixture(scope="module")
def session(daemon):
    return xp.connect(daemon.address)


@pytest.fixture
def sklearn(session):
    if os.environ.get("SCIPY_ARRAY_API") != "1":
        pytest.skip("SCIPY_ARRAY_API=1 must be set before SciPy is imported: run_newest does so")
    found = pytest.importorskip("sklearn", minversion="1.9")
    with found.config_context(array_api_dispatch=True), xp.config(fallback="numpy"):
        yield found


def agree(got, want):
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want))):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", "StandardScaler MinMaxScaler MaxAbsScaler Normalizer Binarizer PolynomialFeatures".split())
def test_scalers(sklearn, name):
    from sklearn import preprocessing
    make = getattr(preprocessing, name)
    with sklearn.config_context(array_api_dispatch=False):
        want = make().fit_transform(X)
    got = make().fit_transform(xp.asarray(X))
    assert isinstance(got, xp.Array)
    agree(got, want)


@pytest.mark.filterwarnings("ignore")
def test_models(sklearn):
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import Ridge
    x, y, classes = xp.asarray(X), xp.asarray(Y), xp.asarray(CLASSES)
    with xp.profile() as p:
        model = PCA(3, svd_solver="covariance_eigh").fit(x)
    assert p.total.requests <= 4
    with sklearn.config_context(array_api_dispatch=False):
        pca, ridge = PCA(3).fit(X), Ridge(solver="svd").fit(X, Y)
        predicted = LinearDiscriminantAnalysis().fit(X, CLASSES).predict(X)
    agree(model.explained_variance_, pca.explained_variance_)
    agree(PCA(3, svd_solver="full").fit(x).explained_variance_, pca.explained_variance_)
    agree(Ridge(solver="svd").fit(x, y).coef_, ridge.coef_)
    agree(LinearDiscriminantAnalysis().fit(x, classes).predict(x), predicted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", "r2_score mean_squared_error mean_absolute_error max_error explained_variance_score accuracy_score "
                                 "zero_one_loss f1_score precision_score recall_score confusion_matrix".split())
def test_metrics(sklearn, name):
    from sklearn import metrics
    of_classes = name in "accuracy_score zero_one_loss f1_score precision_score recall_score confusion_matrix".split()
    a, b = (CLASSES, OTHER) if of_classes else (Y, Y + X[:, 0])
    with sklearn.config_context(array_api_dispatch=False):
        want = getattr(metrics, name)(a, b)
    agree(getattr(metrics, name)(xp.asarray(a), xp.asarray(b)), want)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", "euclidean_distances cosine_similarity linear_kernel rbf_kernel polynomial_kernel chi2_kernel "
                                 "manhattan_distances cosine_distances".split())
def test_pairwise(sklearn, name):
    from sklearn.metrics import pairwise
    x = np.abs(X)
    with sklearn.config_context(array_api_dispatch=False):
        want = getattr(pairwise, name)(x)
    agree(getattr(pairwise, name)(xp.asarray(x)), want)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scikit_learns_own_checks(sklearn, dtype):
    """check_array_api_input_and_values of each estimator that declares it. Not LabelEncoder, which takes no X and y, nor PCA with
    all components, whose last ones are rounding of rank-deficient data: NumPy's differ from each other, too."""
    from sklearn.utils import all_estimators, get_tags
    from sklearn.utils._test_common.instance_generator import _construct_instances
    from sklearn.utils.estimator_checks import check_array_api_input_and_values
    checked = set()
    for name, estimator in all_estimators():
        try:
            made = list(_construct_instances(estimator))
        except Exception:  # noqa: BLE001, S112  it needs something that is not installed
            continue
        for each in made:
            if name not in ("LabelEncoder", "PCA") and get_tags(each).array_api_support:
                check_array_api_input_and_values(name, each, "warpline.xp", dtype_name=dtype)
                checked.add(name)
    assert len(checked) >= 12


def test_einops(session):
    pytest.importorskip("einops")
    from einops import array_api
    m = RANDOM.normal(size=(4, 6, 3))
    x = xp.asarray(m)
    agree(array_api.rearrange(x, "a (b c) d -> (a c) b d", b=2), m.reshape(4, 2, 3, 3).transpose(0, 2, 1, 3).reshape(12, 2, 3))
    agree(array_api.reduce(x, "a b d -> a d", "mean"), m.mean(1))
    agree(array_api.repeat(x[:, :, 0], "a b -> a b c", c=2), np.repeat(m[:, :, :1], 2, 2))


def test_array_api_extra(session):
    xpx = pytest.importorskip("array_api_extra")
    m = RANDOM.normal(size=(5, 4))
    x = xp.asarray(m)
    agree(xpx.cov(x), np.cov(m))
    agree(xpx.atleast_nd(x, ndim=3), m[None])
    agree(xpx.kron(x, x), np.kron(m, m))
    agree(xpx.pad(x, 1), np.pad(m, 1))
    agree(xpx.sinc(x), np.sinc(m))
    agree(xpx.create_diagonal(x[0]), np.diag(m[0]))
    agree(xpx.nunique(xp.asarray([1, 2, 2])), 2)
    assert bool(xp.all(xpx.isclose(x, x + 1e-12)))


def test_array_api_compat(session):
    compat = pytest.importorskip("array_api_compat")
    x = xp.asarray(X)
    assert compat.array_namespace(x) is xp and compat.is_array_api_obj(x)
    assert compat.size(x) == X.size and compat.to_device(x, "cpu").shape == X.shape
    assert not compat.is_lazy_array(x)


def test_xarray(session):
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(xp.asarray(X), dims=("row", "column"))
    assert isinstance(x.mean("row").data, xp.Array)
    agree(x.mean("row").data, X.mean(0))
    agree(((x - x.mean("row")) * 2).data, (X - X.mean(0)) * 2)
    agree(x.isel(row=slice(2, 5)).T.data, X[2:5].T)


def test_dask(session):
    pytest.importorskip("dask.array")
    import dask.array
    whole = dask.array.from_array(xp.asarray(X), chunks=(50, 6), asarray=False)
    got = (whole * 2 + 1).compute()
    assert isinstance(got, xp.Array)
    agree(got, X * 2 + 1)
    agree(whole.sum(axis=0).compute(), X.sum(0))
