"""The layer in front of all public functions: guards, arguments, conversion, scopes, control flow, gradients.

Owns how a public function is entered and left, and what users' functions are turned into. Leaves what functions of
tensors compute to `_ops`, and the bytes of files to `_formats`.
"""
