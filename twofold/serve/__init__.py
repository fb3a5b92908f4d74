"""`twofold serve`: saved models and native libraries over HTTP, by TensorFlow Serving's REST API.

    settings.py   what the command line says
    refusals.py   errors that a client is told, with their HTTP statuses
    servable.py   a version of a model as the server uses it: functions with named tensors
    saved.py      ... from a saved model; rows.py tells whether requests may be joined
    native.py     ... from a library of `tf.export.native`
    models.py     the folder: models, versions, labels, and what becomes of them when files change
    batching.py   requests wait, are joined and run
    tensors.py    JSON to arrays and back
    protocol.py   the bodies of requests and responses
    metrics.py    what Prometheus reads
    app.py        routes, limits and deadlines, as an ASGI application
    door.py       a socket that takes no new connection, before it is closed
    server.py     the process: it listens, and stops without losing a request

Nothing here is imported by `import twofold`. The packages of the extra `serve` are imported when a server is made.
docs/serving.md describes it for users.
"""
