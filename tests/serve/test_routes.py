"""Every route of a server, with what it gives and refuses."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from serve.running import serving

import twofold as tf

X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def server(models):
    with serving(models, "--max-body", "0.1", "--poll", "3600") as running:
        yield running


@pytest.fixture(scope="module")
def direct(models):
    return tf.saved_model.load(models / "net" / "1").signatures


def exactly(value, expected):
    """Whether JSON's numbers are those of an array, to the bit."""
    return np.array_equal(np.array(value, np.float64).astype(expected.dtype), expected)


def test_rows_and_columns_give_the_bits_of_direct_calls(server, direct):
    expected = direct["serving_default"](x=tf.constant(X))["scores"].numpy()
    for body, key in (({"instances": X.tolist()}, "predictions"), ({"inputs": X.tolist()}, "outputs"),
                      ({"inputs": {"x": X.tolist()}}, "outputs"),
                      ({"instances": [{"x": row} for row in X.tolist()], "signature_name": "serving_default"},
                       "predictions")):
        status, document = server.post("net/versions/1:predict", body)
        assert (status, set(document)) == (200, {key})
        assert exactly(document[key], expected)
    assert exactly(server.post("native:predict", {"instances": X.tolist()})[1]["predictions"], expected)
    assert exactly(server.post("native:predict", {"inputs": X.tolist(), "signature_name": "predict"})[1]["outputs"],
                   expected)


def test_the_newest_version_a_version_and_a_label_are_served(server):
    body = {"instances": [[1.0, 0.0, 0.0, 0.0]]}
    newest, old = (server.post(f"net{which}:predict", body)[1] for which in ("", "/versions/1"))
    assert newest != old
    assert server.post("net/versions/12:predict", body) == (200, newest)
    assert server.post("net/labels/stable:predict", body) == (200, old)


def test_strings_numbers_and_booleans_go_both_ways(server):
    raw = b"\xff\x00x"
    rows = [{"name": "grün", "n": 3}, {"name": {"b64": base64.b64encode(raw).decode()}, "n": -4}]
    status, document = server.post("net:predict", {"signature_name": "named", "instances": rows})
    assert status == 200
    assert document["predictions"] == [
        {"upper": "GRüN", "copy_bytes": {"b64": base64.b64encode("grün".encode()).decode()}, "twice": 6, "odd": True},
        {"upper": {"b64": base64.b64encode(b"\xff\x00X").decode()}, "twice": -8, "odd": False,
         "copy_bytes": {"b64": base64.b64encode(raw).decode()}}]
    columns = {"name": ["a", "b"], "n": [1, 2]}
    assert server.post("net:predict", {"signature_name": "named", "inputs": columns})[1]["outputs"]["twice"] == [2, 4]


def test_a_signature_that_assigns_keeps_what_it_assigned(server):
    for path in ("net/versions/1", "native"):
        given = [server.post(f"{path}:predict", {"signature_name": "count", "inputs": n})[1]["outputs"]
                 for n in (1, 2, 3)]
        assert given == [1, 3, 6]


def test_classify_and_regress(server, direct):
    scores = direct["serving_default"](x=tf.constant(X[:2]))["scores"].numpy()
    status, document = server.post("net/versions/1:classify", {"examples": [{"x": row} for row in X[:2].tolist()]})
    assert status == 200
    assert [[label for label, _ in row] for row in document["results"]] == [["", "", ""]] * 2
    assert exactly([[score for _, score in row] for row in document["results"]], scores)
    body = {"signature_name": "mixed", "context": {}, "examples": [{"x": 1.0}, {"x": [4.0]}]}
    assert server.post("net:regress", body) == (200, {"results": [-1.5, 1.5]})
    assert server.post("net:regress", {"examples": [{"x": X[0].tolist()}]})[0] == 400
    assert server.post("net:classify", body)[0] == 400


def test_status(server):
    one = {"state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    status, document = server.get("/v1/models/net")
    assert (status, document["model_version_status"]) == (200, [{"version": "12", **one}, {"version": "1", **one}])
    for path in ("versions/1", "labels/stable"):
        assert server.get(f"/v1/models/net/{path}")[1]["model_version_status"] == [{"version": "1", **one}]
    [broken] = server.get("/v1/models/broken")[1]["model_version_status"]
    assert broken["state"] == "END" and "manifest" in broken["status"]["error_message"]
    assert server.post("broken:predict", {})[0] == 404


@pytest.mark.parametrize(("model", "version"), [("net", "12"), ("native", "3")])
def test_metadata(server, model, version):
    status, document = server.get(f"/v1/models/{model}/metadata")
    assert (status, document["model_spec"]) == (200, {"name": model, "signature_name": "", "version": version})
    signature = document["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["inputs"]["x"]["dtype"] == "DT_FLOAT"
    assert [d["size"] for d in signature["inputs"]["x"]["tensor_shape"]["dim"]] == ["-1", "4"]
    assert [d["size"] for d in signature["outputs"]["scores"]["tensor_shape"]["dim"]] == ["-1", "3"]


def test_health_and_metrics(server):
    assert server.get("/healthz")[0] == 200
    assert server.get("/readyz")[0] == 503  # `broken` has no version
    for path in ("/metrics", "/monitoring/prometheus/metrics"):
        assert 'twofold_model_available{model="net",version="12"} 1.0' in server.get(path)[1]
    before = server.metric('twofold_requests_total{model="",status="404",verb="status"}')
    server.get("/v1/models/unknown")
    assert server.metric('twofold_requests_total{model="",status="404",verb="status"}') == before + 1


@pytest.mark.parametrize(("method", "path", "status"), [
    ("GET", "/", 404), ("GET", "/v1/models", 404), ("GET", "/v1/models/", 404), ("GET", "/v1/models/nobody", 404),
    ("GET", "/v1/models/..%2F..%2Fetc", 404), ("GET", "/v1/models/net/versions/2", 404),
    ("GET", "/v1/models/net/versions/-1", 404), ("GET", f"/v1/models/net/versions/{'9' * 40}", 404),
    ("GET", "/v1/models/net/labels/unknown", 404), ("GET", "/v1/models/net/labels/gone/metadata", 404),
    ("GET", "/v1/models/net/metadata/x", 404), ("POST", "/v1/models/net", 405), ("GET", "/v1/models/net:predict", 405),
    ("PUT", "/v1/models/net:predict", 405), ("POST", "/v1/models/net:train", 404), ("POST", "/healthz", 405),
    ("POST", "/v1/models/nobody:predict", 404), ("POST", "/v1/models/net/versions/2:predict", 404),
    ("POST", "/v1/models/net/labels/gone:predict", 404), ("GET", f"/{'x' * 5000}", 404),
])
def test_errors_of_paths(server, method, path, status):
    got, document, _ = server.request(method, path, b"{}" if method == "POST" else None)
    assert (got, list(document)) == (status, ["error"])


def test_errors_of_values_are_the_client_s(server):
    status, document = server.post("net:predict", {"signature_name": "rows", "inputs": [0, 7]})
    assert status == 400 and "7" in document["error"]
    assert server.post("native:predict", {"signature_name": "rows", "inputs": [0, 7]})[0] == 400
    body = {"signature_name": "both", "inputs": {"x": [1.0, 2.0], "y": [3.0, 4.0, 5.0]}}
    assert server.post("net:predict", body)[0] == 400  # sizes that do not fit one another
    body["inputs"]["y"].pop()
    assert server.post("net:predict", body) == (200, {"outputs": [4.0, 6.0]})


def test_bodies_that_are_too_large_or_packed(server):
    assert server.post("net:predict", b" " * 150_000)[0] == 413
    assert server.request("POST", "/v1/models/net:predict", iter([b" " * 60_000] * 3))[0] == 413  # of unknown length
    assert server.request("POST", "/v1/models/net:predict", b"{}", {"content-encoding": "gzip"})[0] == 415


def test_nan_and_infinity_where_they_are_allowed(models, server):
    body = b'{"inputs": [[NaN, 1, Infinity, -Infinity]]}'
    assert server.post("net:predict", body)[0] == 400
    with serving(models / "net" / "1", "--nan") as lenient:
        assert lenient.get("/readyz")[0] == 200
        status, document = lenient.post("1:predict", body)
        assert status == 200 and np.isnan(document["outputs"]).all()
        assert lenient.post("1:predict", {"signature_name": "rows", "inputs": [float("nan")]})[0] == 400


def test_malformed_bodies(server):
    """By the hundred over one connection; `benchmarks/serve.py malformed` does it by the thousand."""
    from serve.malformed import bodies

    connection = server.connection()
    for body, path in bodies(seed=0, count=400):
        connection.request("POST", path, body)
        response = connection.getresponse()
        document = json.loads(response.read())
        assert 400 <= response.status < 500 and list(document) == ["error"], (body[:200], response.status, document)
    connection.close()
    assert server.post("net:predict", {"instances": X.tolist()})[0] == 200
