"""Files in the Open Neural Network Exchange format, both ways: graphs become ONNX models, and models functions.

`types.py` has the element types, `package.py` the optional package `onnx`, which reads and writes the files.
"""
