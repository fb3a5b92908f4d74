"""`tf.compat.v1.Dimension`, and what TensorFlow 1's logger tells."""

import logging

import pytest

import twofold as tf

v1 = tf.compat.v1


def test_sizes_that_may_be_unknown():
    three, unknown = v1.Dimension(3), v1.Dimension(None)
    assert (three + 2).value == 5 and (10 - three).value == 7 and (three * unknown).value is None
    assert (7 // three).value == 2 and (three % 2).value == 1
    assert three == 3 and three != 4 and (three == unknown) is None and (three < 4) is True and (unknown < 4) is None
    assert int(three) == 3 and list(range(three)) == [0, 1, 2] and str(unknown) == "?" and not v1.Dimension(0)
    assert three.merge_with(None).value == 3 and unknown.merge_with(3).value == 3 and three.is_compatible_with(unknown)
    with pytest.raises(ValueError, match="not compatible"):
        three.merge_with(4)
    with pytest.raises(ValueError, match=">= 0"):
        v1.Dimension(-1)
    with pytest.raises(TypeError):
        three + "a"


def test_logger(caplog):
    with caplog.at_level(logging.INFO, logger="twofold"):
        for _ in range(5):
            v1.logging.log_every_n(v1.logging.INFO, "again %s", 2, "x")
        v1.logging.log_if(v1.logging.INFO, "never", False)
        v1.logging.vlog(v1.logging.INFO, "told")
        v1.logging.TaskLevelStatusMessage("status")
        v1.logging.flush()
    assert caplog.messages == ["again x"] * 3 + ["told", "status"]
    assert v1.control_flow_v2_enabled()
    with v1.colocate_with(tf.ones([2])):
        assert tf.reduce_sum(tf.ones([2])).numpy() == 2
