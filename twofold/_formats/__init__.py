"""Formats of others: pictures, records, tensors, protocol buffers, files and their names.

Owns bytes: what is read is read under bounds, and damage is an error that names the file. Leaves the functions that
users call to the public faces.
"""
