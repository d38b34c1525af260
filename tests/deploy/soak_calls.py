"""What the clients of the soak compute: random calls with operands of small integers, whose results are exact in every
type and order of summation, and are compared with NumPy's bit by bit."""

import numpy as np

import warpline
import warpline_pb2 as v1

KERNELS = "/warpline.v1.KernelService/"


class Operands:
    """Arrays of small integers, views of one that is made once."""

    def __init__(self, rng, elements):
        self._rng = rng
        self._pool = np.random.default_rng(rng.randrange(1 << 32)).integers(-4, 5, elements).astype("f4")

    def array(self, *shape):
        count = int(np.prod(shape))
        begin = self._rng.randrange(len(self._pool) - count + 1)
        return self._pool[begin:begin + count].reshape(shape)

    def narrow(self, rows):
        """The right factor of a product that takes little longer than reading the left one."""
        return self.array(rows, self._rng.randint(1, min(16, len(self._pool) // rows)))


class Wrong(Exception):
    """A result that is not NumPy's."""


def same(got, want, what):
    """True, or Wrong is raised."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or not np.array_equal(got, want):
        raise Wrong(f"{what}: {got.dtype}{list(got.shape)} is not {want.dtype}{list(want.shape)} of NumPy")
    return True


def random_call(rng, client, operands, elements, *, check, a=None, **options):
    """One call of a client, with about so many elements in its operand, or with `a` instead, an array and what stands
    for it in the call. `check`: the result is compared."""
    kind = rng.choice(["transpose", "gemm", "reduce", "run"])
    if a is None:
        rows = rng.randint(1, max(1, int(elements ** 0.5)))
        x = operands.array(rows, max(1, elements // rows))
        given = x
    else:
        x, given = a
    if kind == "gemm":
        b = operands.narrow(x.shape[1])
        y = client.gemm(given, b, **options)
        return not check or same(y, x @ b, "gemm")
    if kind == "transpose":
        y = client.transpose(given, **options)
        return not check or same(y, x.T, "transpose")
    if kind == "reduce":
        op, axis = rng.choice(["sum", "max", "argmin"]), rng.choice([0, 1])
        y = client.reduce(given, op, axis=axis, **options)
        return not check or same(y, getattr(x, op)(axis=axis), f"reduce {op}")
    p, b = warpline.program(), operands.narrow(x.shape[1])
    y, sums, top = client.run(p.transpose(given) * 2.0, p.gemm(given, b).sum(axis=0), p.reduce(given, "max"), **options)
    return not check or (same(y, x.T * 2, "run's transpose") and same(sums, (x @ b).sum(axis=0), "run's sums")
                         and same(top, x.max(), "run's maximum"))


def tensor(array):
    return v1.Tensor(data_type=v1.DATA_TYPE_F32, shape=array.shape, inline=array.tobytes())


def outer(rows, cols):
    """A product that is much larger than what is sent for it."""
    return v1.GemmRequest(a=tensor(np.ones((rows, 1), "f4")), b=tensor(np.ones((1, cols), "f4"))).SerializeToString()


def square(side, variant=""):
    """A product of two matrices that are sent."""
    ones = np.ones((side, side), "f4")
    return v1.GemmRequest(a=tensor(ones), b=tensor(ones), variant=variant).SerializeToString()


def slow_program(side, steps, variant):
    """Products of a matrix that is made on the device: nearly all of its time is the device's. Its result is a sum of
    side * side."""
    names = [f"p{i}" for i in range(steps)]
    operations = [v1.Step(name="a", inputs=["zero", "one"], add=v1.AddStep())]
    operations += [v1.Step(name=name, inputs=[before, "a"], variant=variant, gemm=v1.GemmStep())
                   for name, before in zip(names, ["a", *names])]
    operations += [v1.Step(name="sum", inputs=[names[-1]], reduce=v1.ReduceStep(op=v1.REDUCE_OP_SUM, axes=[0, 1]))]
    inputs = [v1.NamedTensor(name="zero", tensor=tensor(np.zeros((side, 1), "f4"))),
              v1.NamedTensor(name="one", tensor=tensor(np.full((1, side), 1 / side, "f4")))]
    return v1.RunRequest(program=v1.Program(steps=operations, outputs=["sum"]), inputs=inputs).SerializeToString()
