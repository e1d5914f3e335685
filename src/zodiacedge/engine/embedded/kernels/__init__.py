"""Numba kernels: how they are compiled, cached and given memory.

jit            compilation, raw memory, loads and stores
cache          the kernel cache, keyed by what the sources say
layout         offsets of fields in the descriptors that kernels read
hashing        hashes of words and slots
counting_sort  rows sorted by small integer keys
"""
