import gc
import threading
import weakref

import elements
import numpy as np
import pytest
from messages import run_request

import warpline
from warpline.plans import plan_program


def request(*tensors):
    """What is sent, parsed by protobuf."""
    return run_request(plan_program(tensors))


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def test_only_what_is_needed_is_sent(rng):
    a, b = rng.standard_normal((3, 4)), rng.standard_normal((4, 5))
    p = warpline.program()
    c = p.gemm(a, b)
    p.gemm(b.T, a.T).sum(axis=0)
    d = c.transpose().sum(axis=1)
    sent = request(d)
    assert [step.WhichOneof("operation") for step in sent.program.steps] == ["gemm", "transpose", "reduce"]
    assert list(sent.program.outputs) == [sent.program.steps[-1].name]
    assert [t.tensor.inline for t in sent.inputs] == [a.tobytes(), b.tobytes()]
    assert [list(t.tensor.shape) for t in sent.inputs] == [[3, 4], [4, 5]]


def test_an_array_is_sent_once(rng):
    a = rng.standard_normal((4, 4))
    p = warpline.program()
    sent = request(p.gemm(a, a.T) + p.gemm(a.T, a[:, :]) + p.input(a))
    assert len(sent.inputs) == 1
    assert [(s.gemm.trans_a, s.gemm.trans_b) for s in sent.program.steps[:2]] == [(False, True), (True, False)]
    assert len(request(p.gemm(a, a[::-1])).inputs) == 2


def test_names_are_different(rng):
    a = rng.standard_normal((4, 4))
    p = warpline.program()
    sent = request((p.gemm(a, a) * 2 + a).astype("f4").sum(name="total") + np.ones(3, "f4"))
    names = [t.name for t in sent.inputs] + [s.name for s in sent.program.steps]
    assert len(set(names)) == len(names) and "total" in names


def test_names_made_are_none_of_those_given(rng):
    a = rng.standard_normal((4, 4))
    p = warpline.program()
    total = p.input(a)
    for kind in ("x", "add", "scale", "reduce"):
        for i in range(20):
            total = total + p.scale(total, 2, name=f"{kind}{i}").sum()
    sent = request(total)
    names = [t.name for t in sent.inputs] + [step.name for step in sent.program.steps]
    assert len(set(names)) == len(names)
    with pytest.raises(ValueError, match="twin"):
        request(p.scale(a, 2, name="twin") + p.scale(a, 3, name="twin"))


def test_equal_programs_are_sent_with_equal_names(rng):
    """So that the server knows them again."""
    a = rng.standard_normal((4, 4))

    def built(p):
        return request((p.gemm(a, a.T) * 2).sum(axis=0)).SerializeToString()

    once = warpline.program()
    assert built(once) == built(once) == built(warpline.program())


def test_programs_keep_no_arrays(rng):
    a = rng.standard_normal((4, 4))
    alive = weakref.ref(a)
    p = warpline.program()
    total = p.input(a.T).sum()
    del a
    gc.collect()
    assert alive() is not None
    del total
    gc.collect()
    assert alive() is None


def test_arrays_are_read_when_the_program_is_run():
    a = np.zeros(3)
    p = warpline.program()
    s = p.input(a).sum()
    a[:] = 2
    assert request(s).inputs[0].tensor.inline == a.tobytes()


def test_programs_do_not_mix():
    p, q = warpline.program(), warpline.program()
    s, t = p.input(np.ones(3)).sum(), q.input(np.ones(3)).sum()
    with pytest.raises(ValueError, match="another program"):
        s + t
    with pytest.raises(ValueError, match="another program"):
        plan_program([s, t])
    with pytest.raises(ValueError):
        plan_program([])


def test_placeholders_go_into_any_program(rng):
    a, x = rng.standard_normal((4, 4)), warpline.placeholder("x")
    free = x + x.sum(axis=0)
    p, q = warpline.program(), warpline.program()
    for program in (p, q):
        sent = run_request(plan_program([program.gemm(free, a)], {"x": a.T}))
        assert [s.WhichOneof("operation") for s in sent.program.steps] == ["reduce", "map", "gemm"]
        assert {t.name: t.tensor.inline for t in sent.inputs}["x"] == a.T.tobytes() and len(sent.inputs) == 2
    with pytest.raises(ValueError, match="another program"):
        p.gemm(free, a).gemm(free + q.input(a))
    with pytest.raises(ValueError, match="different programs"):
        free.gemm(p.input(a), q.input(a))
    compiled = warpline.program(p.gemm(free, a))
    assert plan_program([compiled], {"x": a}).program is plan_program([compiled], {"x": a}).program


def test_several_threads_make_expressions():
    """The ones that belong to no program share what is known of inputs."""
    x, failures = warpline.placeholder("x"), []

    def work(seed):
        for _ in range(100):
            a = np.full((3, 3), float(seed))
            sent = run_request(plan_program([(x + a).gemm(a.T)], {"x": a}))
            if [t.tensor.inline for t in sent.inputs] != [a.tobytes()] * 2:
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_example(client, rng):
    a, b = rng.standard_normal((30, 40)), rng.standard_normal((40, 50))
    p = warpline.program()
    c = p.gemm(a, b).transpose().sum(axis=1)
    executions = []
    assert np.allclose(client.run(c, report=executions.append), (a @ b).T.sum(axis=1))
    assert len(executions[0].variants) == 3


def test_several_results(client, rng):
    x = rng.integers(-50, 50, (6, 7)).astype("i4")
    p = warpline.program()
    t = p.transpose(x)
    top, where, total = t.max(axis=0), t.argmax(axis=0), t.sum()
    got = client.run(where, top, total, t)
    for y, want in zip(got, (x.argmax(1), x.max(1), x.sum(), x.T)):
        assert np.array_equal(y, want)
    outs = [None, np.zeros(6, "i4"), None, np.zeros((7, 6), "i4", order="F")]
    got = client.run(where, top, total, t, out=outs)
    assert got[1] is outs[1] and np.array_equal(outs[1], x.max(1)) and np.array_equal(outs[3], x.T)
    out = np.zeros(6, "i4")
    assert client.run(top, out=out) is out and np.array_equal(out, x.max(1))


def test_an_output_given_twice_is_computed_once(client, rng):
    x, wide = rng.standard_normal((3, 4)), rng.standard_normal((2, 3, 4))
    p = warpline.program()
    with client.put(x) as t, client.put(wide) as w:
        e, n = t + t, p.scale(x, 2, name="n")
        for outputs, want, steps in [((t.T, t.T), x.T, 1), ((e, e), 2 * x, 1), ((w.T, w.T, w.T), wide.T, 1),
                                     ((n, n), 2 * x, 1), ((p.input(x.T), p.input(x.T)), x.T, 1), ((e.T, e.T), 2 * x.T, 2),
                                     ((t.sum(axis=0), t.sum(axis=0)), x.sum(0), 1)]:
            executions = []
            first, *others = client.run(*outputs, report=executions.append)
            assert all(y is first for y in others) and len(others) == len(outputs) - 1 and np.allclose(first, want)
            assert len(executions[0].variants) == steps
        a, total, b = client.run(e, e.sum(), e)
        assert a is b and np.allclose(a, 2 * x) and np.isclose(total, 2 * x.sum())
        # These are different, although they look alike.
        for one, other in [(t.T, t.mT + 0), (t * 1, t * 2), (t.sum(axis=0), t.sum(axis=1)), (t.astype("f4"), t.astype("i4"))]:
            y, z = client.run(one, other)
            assert y is not z
        program = warpline.program(e, e)
        assert len({id(y) for y in client.run(program) + client.run(program)}) == 2


def test_an_output_given_twice_goes_to_each_out(client, rng):
    x = rng.standard_normal((3, 4))
    e = warpline.program().input(x) + x
    outs = [None, np.zeros((3, 4)), np.zeros((4, 3)).T]
    got = client.run(e, e, e, out=outs)
    assert got[0] is got[1] is outs[1] and got[2] is outs[2] and all(np.array_equal(y, 2 * x) for y in got)
    same = np.zeros((3, 4))
    assert client.run(e, e, out=[same, same])[1] is same and np.array_equal(same, 2 * x)
    for wrong in (np.zeros((4, 3)), np.zeros((3, 4), "f4"), np.broadcast_to(0.0, (3, 4))):
        with pytest.raises(ValueError, match="results of one expression|writeable"):
            client.run(e, e, out=[same, wrong])
    with pytest.raises(ValueError, match="1 arrays for 2 results"):
        client.run(e, e, out=[same])


def test_an_output_given_twice_is_kept_once(client, rng):
    x = rng.standard_normal((3, 4))
    with client.put(x) as t:
        before = len(client.tensors())
        a, b = client.run(t + t, t + t, keep=True)
        assert a is b and len(client.tensors()) == before + 1 and np.array_equal(a, 2 * x)
        out = np.zeros((4, 3))
        kept, inline, again = client.run(t.T, t.T, t.T, keep=[True, False, True], out=[None, out, None])
        assert kept is again and inline is out and np.array_equal(out, x.T) and np.array_equal(kept, x.T)
        a.drop()
        kept.drop()


def test_operators(client, rng):
    a, b = rng.integers(-9, 9, (3, 4)).astype("f4"), rng.integers(-9, 9, (4, 3)).astype("f4")
    p = warpline.program()
    x = p.input(a)
    for tensor, want in [(x + x, a + a), (x + a[0], a + a[0]), (a[:1] + x, a[:1] + a), (x * 3, a * 3),
                         (0.5 * x, 0.5 * a), (-x, -a), (x @ b, a @ b), (b @ x, b @ a), (x.mT, a.T),
                         (x.astype("i1"), a.astype("i1")), (x.sum() + x.mean(axis=1), a.sum() + a.mean(1))]:
        assert np.allclose(client.run(tensor), want)


def test_factors_are_exact(client):
    x = np.array([1, 3], "i8")
    t = warpline.program().input(x)
    for factor in (2**53, -(2**53), np.int64(2**53), True):
        assert np.array_equal(client.run(t * factor), x * int(factor))
    for factor in (2**53 + 1, -(2**53) - 1, np.int64(2**53 + 1), 2**63 - 1):
        assert np.array_equal(client.run(t * factor), x * factor)
    for factor in (2**53 + 1, -(2**53) - 1, np.int64(2**53 + 1), np.uint64(2**63), np.array(2**62), 10**400):
        with pytest.raises(ValueError, match=r"\[-2\^53, 2\^53\]"):
            t.program.scale(t, factor)
    assert client.run(t.astype("f8") * 1e300).tolist() == [1e300, 3e300]
    for factor in (t, "3", 1j, np.ones(2)):
        with pytest.raises(TypeError):
            t.program.scale(t, factor)


@pytest.mark.parametrize("name", elements.REAL)
def test_numbers_become_elements(client, name):
    x = elements.make(name, [True, False] if name == "bool" else [1, 2, 100])
    v, p = elements.values(x), warpline.program()
    t = p.input(x)
    if name == "bool":
        for got in (client.run(t + True), client.run(np.bool_(True) + t)):
            assert got.dtype == bool and got.tolist() == [True, True]
        return
    for tensor, want in [(1 + t, v + 1), (t + True, v + 1), (t - 1, v - 1), (t + x[0], v + 1), (t - x[0], v - 1),
                         (101 - t, 101 - v), (t * 1 + 1, v + 1), (t + t + 1, 2 * v + 1),
                         (t.sum(dtype=x.dtype) * 0 - 1, -1)]:
        got = client.run(tensor)
        assert got.dtype == x.dtype
        assert np.array_equal(elements.values(got), elements.values(elements.make(name, want)))


def test_numbers_that_are_no_elements(client):
    p = warpline.program()
    x = np.ones((2, 2), "f4")
    i, product, unknown = p.input(np.array([1, 2], "u1")), p.gemm(x, x), warpline.placeholder("unknown")
    for wrong in (lambda: i + 256, lambda: -1 + i, lambda: i - 256, lambda: i * 256, lambda: product + 10**400):
        with pytest.raises(OverflowError):
            wrong()
    for wrong in (lambda: unknown + 1, lambda: 1 - unknown, lambda: p.add(2.0, unknown), lambda: unknown.sum() + 1):
        with pytest.raises(TypeError, match="give the placeholder its dtype, or the number"):
            wrong()
    assert client.run(unknown - np.float32(1), unknown=x).tolist() == [[0, 0], [0, 0]]
    assert client.run(product + np.array(1, "f4")).tolist() == [[3, 3], [3, 3]]
    assert client.run(product + 1).tolist() == [[3, 3], [3, 3]] and client.run(product.sum() + 1) == 9
    assert client.run(product.astype("i4").mT - 1).tolist() == [[1, 1], [1, 1]]
    assert client.run(p.input(x.T) + 0.5).tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert client.run(p.add(x, 2)).tolist() == client.run(p.add(2, x)).tolist() == [[3, 3], [3, 3]]


def test_differences(client, rng):
    a, b = rng.integers(-9, 9, (3, 4)).astype("f4"), rng.integers(-9, 9, (3, 4)).astype("f4")
    p = warpline.program()
    x, y = p.input(a), p.input(b)
    for tensor, want in [(x - y, a - b), (x - b, a - b), (a - y, a - b), (x - b[0], a - b[0]), (x - x.sum(), a - a.sum())]:
        assert np.array_equal(client.run(tensor), want)
    u = np.array([1, 5, 250], "u1")
    assert np.array_equal(client.run(p.input(u) - u[::-1]), u - u[::-1])


def test_negative_axes_of_permutations(client, rng):
    x = rng.standard_normal((2, 3, 4))
    p = warpline.program()
    for perm in ((0, -1, 1), (-1, -2, -3), (1, -1, 0), (2, 0, 1)):
        for make in (tuple, np.array, iter):
            assert np.array_equal(client.run(p.transpose(x, make(perm))), x.transpose(perm))
    with pytest.raises(warpline.InvalidArgument, match="perm"):
        client.run(p.transpose(x, (0, -1)))


@pytest.mark.parametrize("name", elements.REAL)
def test_cast_scale_add(client, name, rng):
    x = elements.small(name, (4, 9), rng, 0, 5)
    v = elements.values(x)
    p = warpline.program()
    for other in elements.REAL:
        y = client.run(p.cast(x, elements.ALL[other]))
        assert y.dtype == elements.ALL[other]
        assert np.array_equal(elements.values(y), elements.values(elements.make(other, v)))
    y = client.run(p.add(x, x[:1]))
    assert y.dtype == x.dtype
    assert np.array_equal(elements.values(y), elements.values(elements.make(name, v + v[:1])))
    if name != "bool":
        assert np.array_equal(elements.values(client.run(p.scale(x, 3))),
                              elements.values(elements.make(name, v * 3)))


def test_casts_of_special_values(client):
    x = np.array([np.nan, np.inf, -np.inf, 1e10, -1e10, 2.9, -2.9, 300])
    p = warpline.program()
    assert client.run(p.cast(x, "i4")).tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 2, -2, 300]
    assert client.run(p.cast(x, "u1")).tolist() == [0, 255, 0, 255, 0, 2, 0, 255]
    assert client.run(p.cast(x, "?")).tolist() == [True] * 8
    assert client.run(p.cast(np.array([300, -1, 65536]), "u1")).tolist() == [44, 255, 0]


def test_gemm_with_everything(client, rng):
    a, b, c = (rng.standard_normal(shape) for shape in ((2, 5, 4), (6, 4), (5, 6)))
    bias = rng.standard_normal(6)
    p = warpline.program()
    h = p.gemm(a, b, c, alpha=2, beta=0.5, bias=bias, activation="relu", trans_b=True)
    want = np.maximum(2 * a @ b.T + 0.5 * c + bias, 0)
    assert np.allclose(client.run(h), want)
    assert np.allclose(client.run(p.gemm(a, b.T, c, beta=0)), a @ b.T)
    assert np.allclose(client.run(h.gemm(np.ones((6, 1))).sum()), want.sum())


def test_inputs_in_any_layout(client, rng):
    base = rng.standard_normal((5, 6, 8))
    p = warpline.program()
    for view in (base.T, base.transpose(1, 0, 2), base[..., :7], base[..., 1:].swapaxes(1, 2), base[::2]):
        assert np.allclose(client.run(p.input(view).sum(axis=1)), view.sum(axis=1))


def test_errors_name_the_step(client):
    p = warpline.program()
    bad = p.reduce(warpline.placeholder("x"), "sum", 7, name="sums")
    with pytest.raises(warpline.InvalidArgument, match='step "sums"') as caught:
        client.run(bad, x=np.ones((2, 3)))
    assert caught.value.violations[0].field == "program.steps[0].axes"


def test_factors_that_are_equal_but_not_the_same(client):
    t = client.put(np.ones(3))
    for factor in (0.0, -0.0, 0.0):  # graphs that are alike are made once
        assert np.signbit(client.run(warpline.program().scale(t, factor))).tolist() == [np.signbit(factor)] * 3
