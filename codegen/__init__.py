"""From scalar bodies to machine code: loop nests, how to walk memory, and the backends.

Owns the loop IR (`loop`), the schedules that make kernels of scalar bodies (`schedule`, `reduce`), and the
translation of kernels to LLVM and numba source. Leaves to others: what an op computes (`ir`), and loading,
caching and calling what was compiled (`runtime`).
"""
