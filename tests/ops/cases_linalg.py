"""Cases of linear algebra: products, contractions, equations, determinants, decompositions and norms."""

from __future__ import annotations

from functools import partial

import numpy as np
from ops.case import Bad, Case

import twofold as tf
from twofold.ir import dtypes as dt

INVALID = tf.errors.InvalidArgumentError
LAPACK = (dt.float32, dt.float64, dt.complex64, dt.complex128)
SUMMED = dt.REAL | dt.COMPLEX
Row = partial(Case, elementwise=False)  # none of these takes operands of any shape


def adj(x):
    return np.conj(np.swapaxes(x, -1, -2))


def swap(x):
    return np.swapaxes(x, -1, -2)


def well_conditioned(rng, shape):
    """Matrices near a multiple of the identity."""
    return rng.uniform(-1, 1, shape) + 3 * np.eye(*shape[-2:])


def spread(rng, shape):
    """Matrices whose singular values lie well apart."""
    *batch, m, n = shape
    k = min(m, n)
    u = np.linalg.qr(rng.normal(size=(*batch, m, m)))[0][..., :k]
    v = np.linalg.qr(rng.normal(size=(*batch, n, n)))[0][..., :k]
    return (u * np.arange(1.0, k + 1)) @ swap(v)


def positive(x):
    """Hermitian positive definite matrices from any."""
    one = tf.constant(np.eye(x.shape[-1]).astype(x.dtype.np) * 2)
    return tf.matmul(x, x, adjoint_b=True) + one


def np_positive(x):
    return x @ adj(x) + 2 * np.eye(x.shape[-1])


def hermitian(x):
    return x + tf.linalg.adjoint(x)


def projector(v):
    """Outer products of the columns, which do not depend on their phases."""
    return tf.einsum("...ik,...jk->...kij", v, tf.math.conj(v))


def np_projector(v):
    return np.einsum("...ik,...jk->...kij", v, np.conj(v))


def svd_parts(x):
    s, u, v = tf.linalg.svd(x)
    return s, projector(u), projector(v), tf.einsum("...ik,...jk->...kij", u, tf.math.conj(v))


def np_svd_parts(x):
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    v = adj(vh)
    return s, np_projector(u), np_projector(v), np.einsum("...ik,...jk->...kij", u, np.conj(v))


def eigh_parts(x):
    e, v = tf.linalg.eigh(hermitian(x))
    return e, projector(v)


def np_eigh_parts(x):
    e, v = np.linalg.eigh(x + adj(x))
    return e, np_projector(v)


def qr_parts(x, full_matrices=False):
    """Q and R with the signs chosen so that the diagonal of R is positive."""
    q, r = tf.linalg.qr(x, full_matrices)
    return tf.matmul(q, r), projector(q[..., : min(x.shape[-2:])]), tf.matmul(r, r, adjoint_a=True)


def np_qr_parts(x, full_matrices=False):
    q, r = np.linalg.qr(x, "complete" if full_matrices else "reduced")
    return q @ r, np_projector(q[..., : min(x.shape[-2:])]), adj(r) @ r


def sorted_eigvals(x):
    e = tf.linalg.eigvals(x)
    order = tf.argsort(tf.math.real(e))
    return tf.gather(e, order, axis=-1, batch_dims=len(e.shape) - 1)


def np_sorted_eigvals(x):
    e = np.linalg.eigvals(x)
    return np.take_along_axis(e, np.argsort(e.real, axis=-1), -1).astype(np.complex128)


def eig_parts(x):
    """The eigenvalues by their real parts, and the projectors on their vectors, whose phases are free."""
    e, v = tf.linalg.eig(x)
    order = tf.argsort(tf.math.real(e))
    batch = len(e.shape) - 1
    return tf.gather(e, order, axis=-1, batch_dims=batch), projector(tf.gather(v, order, axis=-1, batch_dims=batch))


def np_eig_parts(x):
    e, v = np.linalg.eig(x)
    order = np.argsort(e.real, axis=-1)
    return (np.take_along_axis(e, order, -1).astype(np.complex128),
            np_projector(np.take_along_axis(v, order[..., None, :], -1)).astype(np.complex128))


def complex_of(dtype):
    return dt.complex64 if dtype in (dt.float32, dt.complex64) else dt.complex128


def expm(x):
    """The power series, of which 40 terms are plenty for norms up to 4."""
    term = total = np.broadcast_to(np.eye(x.shape[-1]), x.shape).astype(x.dtype)
    for k in range(1, 60):
        term = term @ x / k
        total = total + term
    return total


def _matmul_cases():
    plain = [
        [(3, 4), (4, 5)],
        [(2, 3, 4), (2, 4, 5)],
        [(2, 3, 4), (4, 2)],
        [(3, 4), (2, 4, 2)],
        [(2, 1, 3, 2), (3, 2, 1)],
        [(0, 4), (4, 5)],
        [(3, 0), (0, 5)],
        [(3, 4), (4, 0)],
        [(1, 40), (40, 1)],
    ]
    cases = [Row("matmul", "matmul", plain, np.matmul, SUMMED, ulps=2, half_ulps=1, atol=60)]
    turned = {"transpose_a": swap, "adjoint_a": adj, "transpose_b": swap, "adjoint_b": adj}
    for names in (
        ("transpose_a",),
        ("transpose_b",),
        ("adjoint_a",),
        ("adjoint_b",),
        ("transpose_a", "transpose_b"),
        ("transpose_a", "adjoint_b"),
        ("adjoint_a", "transpose_b"),
        ("adjoint_a", "adjoint_b"),
    ):
        f = next((turned[n] for n in names if n.endswith("_a")), lambda x: x)
        g = next((turned[n] for n in names if n.endswith("_b")), lambda x: x)
        a = (2, 4, 3) if names[0].endswith("_a") else (2, 3, 4)
        b = (2, 5, 4) if names[-1].endswith("_b") else (2, 4, 5)
        cases.append(
            Row(
                "matmul",
                "matmul",
                [a, b],
                lambda x, y, f=f, g=g: f(x) @ g(y),
                (dt.float32, dt.float64, dt.complex64, dt.complex128),
                dict.fromkeys(names, True),
                oracle_kwargs={},
                ulps=2,
                atol=60,
                id="matmul-" + "-".join(names),
            )
        )
    return cases


def _einsum_cases():
    rows = [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (3, 4, 2)]),
        ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("i,i->", [(4,), (4,)]),
        ("i,j->ij", [(3,), (4,)]),
        ("i,i->i", [(4,), (4,)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iij,jk->ik", [(3, 3, 2), (2, 2)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("i,j,k->kji", [(2,), (3,), (2,)]),
        ("abc,cd->", [(2, 2, 3), (3, 2)]),
        (",ij->ij", [(), (2, 3)]),
        ("...i->...", [(2, 3, 4)]),
        ("ab,b...->a...", [(2, 3), (3, 2, 2)]),
        ("ij,jk->ik", [(0, 3), (3, 4)]),
        ("ij,jk->ik", [(2, 0), (0, 4)]),
    ]
    contracting = {"ij,jk->ik", "ij,jk", "bij,bjk->bik", "...ij,...jk->...ik", "bhqd,bhkd->bhqk"}
    return [
        Row(
            ("matmul",) if equation in contracting else (),
            lambda *xs, e=equation: tf.einsum(e, *xs),
            shapes,
            lambda *xs, e=equation: np.einsum(e, *xs),
            (dt.float32, dt.float64, dt.int32, dt.complex128),
            ulps=4,
            atol=100,
            id=f"einsum-{equation}-{n}",
        )
        for n, (equation, shapes) in enumerate(rows)
    ]


def _norm_cases():
    cases = []
    vectors = [("euclidean", None), ("euclidean", 1), (1, 1), (2, None), (np.inf, 0), (3, -1), (2.5, None)]
    for ord, axis in vectors:
        cases.append(
            Row(
                (),
                "norm",
                [(3, 4)],
                lambda x, ord, axis: np.linalg.norm(
                    x.ravel() if axis is None else x, 2 if ord == "euclidean" else ord, axis
                ),
                dt.FLOATING,
                {"ord": ord, "axis": axis},
                ulps=4,
                id=f"norm-{ord}-{axis}",
            )
        )
    for ord in ("euclidean", "fro", 1, np.inf):
        cases.append(
            Row(
                (),
                "norm",
                [(2, 3, 4)],
                lambda x, ord, axis, keepdims: np.linalg.norm(x, "fro" if ord == "euclidean" else ord, axis, keepdims),
                (dt.float32, dt.float64),
                {"ord": ord, "axis": (0, 2), "keepdims": True},
                ulps=4,
                id=f"norm-matrix-{ord}",
            )
        )
    cases.append(
        Row(
            "svd",
            "norm",
            [(3, 4, 2)],
            lambda x, ord, axis: np.linalg.norm(x, ord, axis),
            (dt.float32, dt.float64),
            {"ord": 2, "axis": (0, 1)},
            ulps=8,
            id="norm-matrix-2",
        )
    )
    cases.append(
        Row(
            (),
            lambda x: tf.norm(x, axis=1),
            [(3, 4)],
            lambda x: np.linalg.norm(x, axis=1) + 0j,
            dt.COMPLEX,
            ulps=4,
            id="norm-complex",
        )
    )
    return cases


CASES = [
    *_matmul_cases(),
    *(
        Row(
            "int8_matmul",
            lambda a, b, turned: tf.matmul(a, b, output_type=tf.int32, **turned),
            shapes,
            lambda a, b, turned: np.matmul(
                *(np.swapaxes(x.astype(np.int32), -1, -2) if n in turned else x.astype(np.int32)
                  for n, x in (("transpose_a", a), ("transpose_b", b)))
            ),
            (dt.int8,),
            {"turned": dict.fromkeys(names, True)},
            result=dt.int32,
            id="-".join(("matmul-int8", *names, str(shapes))),
        )
        for names, shapes in (
            ((), [(3, 4), (4, 5)]),
            ((), [(2, 1, 3, 70), (3, 70, 1)]),
            ((), [(0, 4), (4, 5)]),
            ((), [(3, 0), (0, 5)]),
            (("transpose_a",), [(2, 4, 3), (2, 4, 5)]),
            (("transpose_b",), [(3, 4), (2, 5, 4)]),
            (("transpose_a", "transpose_b"), [(20, 17), (35, 20)]),
        )
    ),
    Row(
        "matmul",
        "linalg.matvec",
        [[(3, 4), (4,)], [(2, 3, 4), (2, 4)]],
        lambda a, b: (a @ b[..., None])[..., 0],
        SUMMED,
        ulps=2,
        half_ulps=1,
        atol=60,
        id="matvec",
    ),
    Row(
        "matmul",
        "tensordot",
        [[(2, 3, 4), (4, 3, 2)]],
        lambda a, b, axes: np.tensordot(a, b, axes),
        (dt.float32, dt.float64, dt.int64, dt.complex64),
        {"axes": [[1, 2], [1, 0]]},
        ulps=2,
        atol=200,
        id="tensordot",
    ),
    Row(
        "matmul",
        "tensordot",
        [[(2, 3), (2,)], [(), ()]],
        lambda a, b, axes: np.tensordot(a, b, axes),
        kwargs={"axes": 0},
        id="tensordot-outer",
    ),
    *_einsum_cases(),
    Row((), lambda x: tf.einsum("i->ii", x), [(3,)], np.diag, (dt.float32, dt.float64), id="einsum-diagonal"),
    Row((), "linalg.matrix_transpose", [(2, 3, 4)], swap, dt.ALL, id="matrix_transpose"),
    Row((), "linalg.adjoint", [(2, 3, 4)], adj, dt.ALL, id="adjoint"),
    Row(
        (),
        "linalg.trace",
        [[(2, 3, 4)], [(4, 2)], [(0, 0)]],
        lambda x: np.trace(x, axis1=-2, axis2=-1),
        dt.FLOATING,
        ulps=2,
        half_ulps=1,
        atol=10,
        id="trace",
    ),
    Row(
        "gather",
        "linalg.cross",
        [[(2, 3), (2, 3)], [(3,), (3,)]],
        np.cross,
        (dt.float32, dt.float64, dt.int32),
        ulps=2,
        atol=20,
        id="cross",
    ),
    *_norm_cases(),
    Row(
        (),
        "linalg.normalize",
        [(3, 4)],
        lambda x, ord, axis: (x / np.linalg.norm(x, 1, axis, keepdims=True), np.linalg.norm(x, 1, axis, keepdims=True)),
        (dt.float32, dt.float64),
        {"ord": 1, "axis": 1},
        ulps=4,
        id="normalize",
    ),
    Row(
        ("rsqrt", "maximum"),
        "linalg.l2_normalize",
        [(3, 4)],
        lambda x, axis: x / np.linalg.norm(x, axis=axis, keepdims=True),
        (dt.float32, dt.float64),
        {"axis": 1},
        ulps=4,
        id="l2_normalize",
    ),
    Row(
        "rsqrt",
        "linalg.l2_normalize",
        [(3, 4)],
        lambda x: x / np.linalg.norm(x.ravel()),
        dt.COMPLEX,
        ulps=4,
        id="l2_normalize-complex",
    ),
    # -- equations
    Row(
        "cholesky",
        lambda x: tf.linalg.cholesky(positive(x)),
        [[(2, 4, 4)], [(1, 1)], [(0, 3, 3)]],
        lambda x: np.linalg.cholesky(np_positive(x)),
        LAPACK,
        domain=(-1, 1),
        ulps=16,
        atol=40,
    ),
    Row(
        ("matrix_triangular_solve",),
        lambda x, b: tf.linalg.cholesky_solve(tf.linalg.cholesky(positive(x)), b),
        [(2, 3, 3), (2, 3, 2)],
        lambda x, b: np.linalg.solve(np_positive(x), b),
        LAPACK,
        domain=(-1, 1),
        ulps=16,
        atol=40,
        id="cholesky_solve",
    ),
    Row(
        "matrix_inverse",
        "linalg.inv",
        [[(2, 3, 3)], [(1, 1)], [(0, 3, 3)]],
        np.linalg.inv,
        LAPACK,
        domain=well_conditioned,
        ulps=16,
        atol=20,
    ),
    Row(
        "matrix_inverse",
        "linalg.inv",
        [(2, 3, 3)],
        lambda x: adj(np.linalg.inv(x)),
        LAPACK,
        {"adjoint": True},
        oracle_kwargs={},
        domain=well_conditioned,
        ulps=16,
        atol=20,
        id="inv-adjoint",
    ),
    Row(
        "matrix_solve",
        "linalg.solve",
        [[(2, 3, 3), (2, 3, 2)], [(3, 3), (2, 3, 1)], [(2, 3, 3), (3, 2)]],
        np.linalg.solve,
        LAPACK,
        domain=[well_conditioned, (-1, 1)],
        ulps=16,
        atol=20,
    ),
    Row(
        "matrix_solve",
        "linalg.solve",
        [(2, 3, 3), (2, 3, 2)],
        lambda a, b: np.linalg.solve(adj(a), b),
        LAPACK,
        {"adjoint": True},
        oracle_kwargs={},
        domain=[well_conditioned, (-1, 1)],
        ulps=16,
        atol=20,
        id="solve-adjoint",
    ),
    Row(
        "matrix_triangular_solve",
        "linalg.triangular_solve",
        [[(2, 4, 4), (2, 4, 2)], [(4, 4), (2, 4, 1)], [(2, 3, 3), (3, 2)]],
        lambda a, b: np.linalg.solve(np.tril(a), b),
        LAPACK,
        domain=[well_conditioned, (-1, 1)],
        ulps=16,
        atol=20,
    ),
    Row(
        "matrix_triangular_solve",
        "linalg.triangular_solve",
        [(70, 70), (70, 3)],
        lambda a, b: np.linalg.solve(np.tril(a), b),
        (dt.float32, dt.float64),
        domain=[lambda rng, shape: rng.uniform(-0.1, 0.1, shape) + 3 * np.eye(70), (-1, 1)],
        ulps=16,
        atol=20,
        second="the first derivative of a system of 70 says as much",
        id="triangular_solve-blocks",
    ),
    Row(
        "matrix_triangular_solve",
        "linalg.triangular_solve",
        [(2, 4, 4), (2, 4, 2)],
        lambda a, b: np.linalg.solve(np.triu(a), b),
        LAPACK,
        {"lower": False},
        oracle_kwargs={},
        domain=[well_conditioned, (-1, 1)],
        ulps=16,
        atol=20,
        id="triangular_solve-upper",
    ),
    Row(
        "matrix_triangular_solve",
        "linalg.triangular_solve",
        [(2, 4, 4), (2, 4, 2)],
        lambda a, b: np.linalg.solve(adj(np.triu(a)), b),
        LAPACK,
        {"lower": False, "adjoint": True},
        oracle_kwargs={},
        domain=[well_conditioned, (-1, 1)],
        ulps=16,
        atol=20,
        id="triangular_solve-upper-adjoint",
    ),
    Row(
        "cholesky",
        "linalg.lstsq",
        [(2, 4, 3), (2, 4, 2)],
        lambda a, b: np.linalg.pinv(a) @ b,
        LAPACK,
        domain=[spread, (-1, 1)],
        ulps=16,
        atol=100,
        id="lstsq-tall",
    ),
    Row(
        "cholesky",
        "linalg.lstsq",
        [(2, 3, 4), (2, 3, 2)],
        lambda a, b: np.linalg.pinv(a) @ b,
        LAPACK,
        domain=[spread, (-1, 1)],
        ulps=16,
        atol=100,
        id="lstsq-wide",
    ),
    Row(
        "cholesky",
        "linalg.lstsq",
        [(4, 3), (4, 1)],
        lambda a, b, l2_regularizer: np.linalg.solve(a.T @ a + l2_regularizer * np.eye(3), a.T @ b),
        (dt.float32, dt.float64),
        {"l2_regularizer": 0.5},
        ulps=16,
        atol=40,
        id="lstsq-regularized",
    ),
    Row(
        "pinv",
        "linalg.lstsq",
        [(4, 3), (4, 1)],
        lambda a, b: np.linalg.pinv(a) @ b,
        LAPACK,
        {"fast": False},
        oracle_kwargs={},
        domain=[spread, (-1, 1)],
        ulps=16,
        atol=40,
        id="lstsq-pinv",
    ),
    Row(
        "pinv",
        "linalg.pinv",
        [[(2, 4, 3)], [(2, 3, 4)], [(3, 3)]],
        np.linalg.pinv,
        LAPACK,
        domain=spread,
        ulps=16,
        atol=40,
    ),
    Row(
        "svd",
        "linalg.matrix_rank",
        [(2, 3, 4)],
        lambda x: np.linalg.matrix_rank(x).astype(np.int32),
        LAPACK,
        domain=lambda rng, shape: np.ones(shape),
        grad=False,
        result=dt.int32,
        id="matrix_rank",
    ),
    # -- determinants
    Row(
        "matrix_determinant",
        "linalg.det",
        [[(2, 3, 3)], [(1, 1)], [(4, 4)]],
        np.linalg.det,
        LAPACK,
        domain=well_conditioned,
        ulps=16,
        atol=100,
    ),
    Row(
        "log_matrix_determinant",
        "linalg.slogdet",
        [[(2, 3, 3)], [(1, 1)]],
        lambda x: (lambda s, v: (s, v.astype(x.dtype)))(*np.linalg.slogdet(x)),
        LAPACK,
        domain=well_conditioned,
        ulps=16,
        atol=10,
    ),
    Row(
        "cholesky",
        lambda x: tf.linalg.logdet(positive(x)),
        [(2, 3, 3)],
        lambda x: np.linalg.slogdet(np_positive(x))[1],
        LAPACK,
        domain=(-1, 1),
        ulps=16,
        atol=20,
        id="logdet",
    ),
    # -- decompositions
    Row("qr", qr_parts, [[(2, 4, 3)], [(3, 3)], [(2, 3, 4)]], np_qr_parts, LAPACK, domain=spread, ulps=16, atol=100),
    Row(
        "qr",
        qr_parts,
        [(2, 3, 4)],
        np_qr_parts,
        LAPACK,
        {"full_matrices": True},
        domain=spread,
        ulps=16,
        atol=100,
        id="qr-full",
    ),
    Row(
        "qr",
        lambda x: tf.matmul(*tf.linalg.qr(x, True)),
        [(2, 4, 3)],
        lambda x: x,
        (dt.float32, dt.float64),
        domain=spread,
        ulps=16,
        atol=40,
        grad=(),
        id="qr-full-tall",
    ),
    Row("svd", svd_parts, [[(2, 4, 3)], [(3, 3)], [(2, 3, 4)]], np_svd_parts, LAPACK, domain=spread, ulps=16, atol=100),
    Row(
        "svd",
        "linalg.svd",
        [[(2, 4, 3)], [(2, 3)]],
        lambda x: np.linalg.svd(x, compute_uv=False),
        LAPACK,
        {"compute_uv": False},
        oracle_kwargs={},
        domain=spread,
        ulps=16,
        id="svd-values",
    ),
    Row(
        "self_adjoint_eig",
        eigh_parts,
        [[(2, 3, 3)], [(1, 1)]],
        np_eigh_parts,
        LAPACK,
        domain=lambda rng, shape: rng.uniform(-0.3, 0.3, shape) + np.diag(np.arange(1.0, shape[-1] + 1)),
        ulps=16,
        atol=100,
    ),
    Row(
        "self_adjoint_eig",
        lambda x: tf.linalg.eigvalsh(hermitian(x)),
        [(2, 3, 3)],
        lambda x: np.linalg.eigvalsh(x + adj(x)),
        LAPACK,
        domain=lambda rng, shape: rng.uniform(-0.3, 0.3, shape) + np.diag(np.arange(1.0, shape[-1] + 1)),
        ulps=16,
        atol=40,
        id="eigvalsh",
    ),
    Row(
        "eig",
        sorted_eigvals,
        [(2, 3, 3)],
        np_sorted_eigvals,
        LAPACK,
        ulps=16,
        atol=100,
        domain=lambda rng, shape: rng.uniform(-0.3, 0.3, shape) + np.diag(np.arange(1.0, shape[-1] + 1)),
        result=complex_of,
        id="eigvals",
    ),
    Row(
        "eig",
        eig_parts,
        [[(2, 3, 3)], [(1, 1)]],
        np_eig_parts,
        LAPACK,
        ulps=16,
        atol=200,
        domain=lambda rng, shape: rng.uniform(-0.3, 0.3, shape) + np.diag(np.arange(1.0, shape[-1] + 1)),
        result=complex_of,
        id="eig-parts",
    ),
    Row(
        "eig",
        lambda x: (lambda e, v: tf.matmul(tf.stop_gradient(tf.cast(x, v.dtype)), v) - e[..., None, :] * v)(
            *tf.linalg.eig(x)
        ),
        [(2, 3, 3)],
        lambda x: np.zeros(x.shape, np.complex128),
        (dt.float32, dt.float64),
        atol=100,
        grad=False,
        result=lambda d: dt.complex64 if d is dt.float32 else dt.complex128,
        id="eig",
    ),
    Row(
        "matrix_exponential",
        "linalg.expm",
        [[(2, 3, 3)], [(1, 1)], [(0, 2, 2)]],
        expm,
        LAPACK,
        domain=(-1, 1),
        ulps=4,
        atol=16,
    ),
    Row(
        "matrix_exponential",
        "linalg.expm",
        [(2, 3, 3)],
        expm,
        (dt.float32, dt.float64),
        domain=(-4, 4),
        ulps=4,
        atol=4000,
        grad=(),
        id="expm-squared",
    ),
]

_SQUARE = np.eye(2, dtype=np.float32)

ERRORS = [
    Bad("matmul of int8: inner sizes", lambda: tf.matmul(tf.ones([2, 3], tf.int8), tf.ones([2, 3], tf.int8),
                                                         output_type=tf.int32), INVALID, "int8_matmul"),
    Bad("matmul: inner sizes", lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])), INVALID, "matmul"),
    Bad("matmul: rank", lambda: tf.matmul(tf.ones([3]), tf.ones([3, 3])), INVALID, "rank"),
    Bad("matmul: dtypes", lambda: tf.matmul(tf.ones([2, 2]), tf.ones([2, 2], tf.float64)), INVALID, "float64"),
    Bad("matmul: bool", lambda: tf.matmul([[True]], [[True]]), INVALID, "bool"),
    Bad("matmul: batch", lambda: tf.matmul(tf.ones([2, 2, 2]), tf.ones([3, 2, 2])), INVALID, "batch"),
    Bad(
        "matmul: both turns",
        lambda: tf.matmul(_SQUARE, _SQUARE, transpose_a=True, adjoint_a=True),
        INVALID,
        "transpose_a",
    ),
    Bad("einsum: terms", lambda: tf.einsum("ij,jk->ik", _SQUARE), INVALID, "einsum.*2 terms"),
    Bad("einsum: label", lambda: tf.einsum("ij->iz", _SQUARE), INVALID, "'z'"),
    Bad("einsum: rank", lambda: tf.einsum("ijk->i", _SQUARE), INVALID, "rank 2"),
    Bad("einsum: sizes", lambda: tf.einsum("ij,jk->ik", _SQUARE, tf.ones([3, 2])), INVALID, "'j'"),
    Bad("einsum: keyword", lambda: tf.einsum("ij->ji", _SQUARE, unknown=1), TypeError, "unknown"),
    Bad("tensordot: sizes", lambda: tf.tensordot(tf.ones([2, 3]), tf.ones([2, 3]), 1), INVALID, "tensordot"),
    Bad("tensordot: axes", lambda: tf.tensordot(_SQUARE, _SQUARE, [[2], [0]]), INVALID, "rank 2"),
    Bad("inv: singular", lambda: tf.linalg.inv(tf.zeros([2, 2])), INVALID, "not invertible"),
    Bad("inv: rank", lambda: tf.linalg.inv(tf.ones([2])), INVALID, "rank"),
    Bad("inv: not square", lambda: tf.linalg.inv(tf.ones([2, 3])), INVALID, "square"),
    Bad("inv: dtype", lambda: tf.linalg.inv([[1]]), INVALID, "int32"),
    Bad("solve: singular", lambda: tf.linalg.solve(tf.zeros([2, 2]), _SQUARE), INVALID, "not invertible"),
    Bad("solve: sizes", lambda: tf.linalg.solve(_SQUARE, tf.ones([3, 1])), INVALID, "incompatible"),
    Bad(
        "triangular_solve: zero",
        lambda: tf.linalg.triangular_solve(tf.zeros([2, 2]), _SQUARE),
        INVALID,
        "not invertible",
    ),
    Bad(
        "cholesky: negative", lambda: tf.linalg.cholesky(-_SQUARE), INVALID, "Cholesky decomposition was not successful"
    ),
    Bad("det: not square", lambda: tf.linalg.det(tf.ones([2, 3])), INVALID, "square"),
    Bad("svd: NaN", lambda: tf.linalg.svd(tf.fill([2, 2], float("nan"))), INVALID, "svd"),
    Bad("cross: size", lambda: tf.linalg.cross([1.0, 2.0], [1.0, 2.0]), INVALID, "cross"),
    Bad("norm: ord", lambda: tf.norm(_SQUARE, ord=-1), INVALID, "-1"),
    Bad("norm: axis", lambda: tf.norm(_SQUARE, axis=2), INVALID, "axis"),
]
