"""Sparse tensors of SciPy's arrays, and the other way; by dense arrays, and by whose memory values have."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import twofold as tf

DENSE = np.array([[0, 1.5, 0, 2.5], [0, 0, 0, 0], [3.5, 0, 0, 0]], np.float32)


@pytest.mark.parametrize("format", ["csr", "coo", "csc", "dok", "lil", "bsr", "dia"])
@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_matrices_become_tensors(format, kind) -> None:
    matrix = kind(DENSE).asformat(format)
    st = tf.SparseTensor.from_scipy(matrix)
    assert st.dtype is tf.float32 and st.shape == (3, 4)
    np.testing.assert_array_equal(tf.sparse.to_dense(st), DENSE)  # which refuses another order
    for back in ("csr", "coo"):
        again = st.to_scipy(back)
        assert again.format == back and np.array_equal(again.toarray(), DENSE) and again.dtype == np.float32


def test_values_are_shared_where_that_is_asked_for() -> None:
    for matrix in (scipy.sparse.csr_array(DENSE), scipy.sparse.coo_array(DENSE)):
        shared, own = (tf.SparseTensor.from_scipy(matrix, copy=copy) for copy in (False, True))
        assert np.shares_memory(np.asarray(shared.values), matrix.data)
        assert not np.shares_memory(np.asarray(own.values), matrix.data)
        for format in ("csr", "coo"):
            back = own.to_scipy(format)
            assert np.shares_memory(back.data, np.asarray(own.values)) and not back.data.flags.writeable


def test_other_orders_repeated_elements_and_other_ranks() -> None:
    rows, columns, values = np.array([2, 0, 2, 0]), np.array([0, 3, 0, 1]), np.array([1.0, 2.5, 2.5, 1.5])
    twice = scipy.sparse.coo_array((values, (rows, columns)), (3, 4))
    np.testing.assert_array_equal(tf.sparse.to_dense(tf.SparseTensor.from_scipy(twice, copy=False)), DENSE)
    assert twice.nnz == 4 and values.tolist() == [1.0, 2.5, 2.5, 1.5]
    behind = scipy.sparse.csr_array((np.array([2.5, 1.5, 3.5]), np.array([3, 1, 0]), np.array([0, 2, 2, 3])), (3, 4))
    np.testing.assert_array_equal(tf.sparse.to_dense(tf.SparseTensor.from_scipy(behind)), DENSE)
    line = scipy.sparse.coo_array(DENSE[0])
    st = tf.SparseTensor.from_scipy(line)
    assert st.indices.numpy().tolist() == [[1], [3]] and np.array_equal(st.to_scipy("coo").toarray(), DENSE[0])
    turned = tf.SparseTensor([[2, 0], [0, 1]], [3.5, 1.5], [3, 4]).to_scipy()
    assert turned.toarray().tolist() == [[0, 1.5, 0, 0], [0] * 4, [3.5, 0, 0, 0]]
    empty = tf.SparseTensor.from_scipy(scipy.sparse.csr_array((2, 3)))
    assert empty.indices.shape == (0, 2) and empty.to_scipy().nnz == 0


def test_what_is_no_matrix_is_refused() -> None:
    with pytest.raises(TypeError, match="SciPy"):
        tf.SparseTensor.from_scipy(DENSE)
    with pytest.raises(ValueError, match="format"):
        tf.SparseTensor([[1]], [1.0], [3]).to_scipy()
    with pytest.raises(ValueError, match="format"):
        tf.SparseTensor([[1, 0]], [1.0], [3, 3]).to_scipy("dok")
