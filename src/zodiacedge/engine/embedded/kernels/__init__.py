"""Numba kernels: how they are compiled, cached and given memory.

jit            compilation, raw memory, loads and stores
target         what compiled kernels depend on: sources, Python, Numba, a processor
cache          compiled kernels on disk: this machine's, and those that come with the package
layout         offsets of fields in the descriptors that kernels read
hashing        hash functions and home slots
counting_sort  rows sorted by small integer keys
"""
