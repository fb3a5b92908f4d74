"""Saved models that TensorFlow wrote: `tf.saved_model.load` of a folder with a `saved_model.pb`.

A file is data from anywhere: it is parsed from its wire format under bounds (`messages.py`, `tensors.py`, `graphs.py`,
`objects.py`), nothing of it is imported or evaluated, and its graphs are run, in traces, by a table of what each op
means (`table.py`, and `tf.raw_ops` for all that only computes). docs/saved_model.md says what is read.
"""
