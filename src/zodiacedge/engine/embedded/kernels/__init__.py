"""Numba kernels: how they are compiled, cached and given memory.

jit            compilation, raw memory, loads and stores
cache          the disk cache of kernels, keyed by a hash of their sources
layout         offsets of fields in the descriptors that kernels read
hashing        hash functions and home slots
counting_sort  rows sorted by small integer keys
"""
