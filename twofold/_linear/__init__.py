"""Linear operators: matrices that are known by what they are made of, such as a diagonal or a product of others.

`base.py` says what an operator is, and how each question to it is answered by its dense matrix; the other files hold
the operators, which answer what they can from their structure. All of it is made of functions on dense tensors. The
files are loaded when `tf.linalg` is first asked for an operator.
"""
