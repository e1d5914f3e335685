"""Kernels: how they are compiled, cached, linked and given memory.

jit            what a kernel is here: linked, compiled by Numba or interpreted; raw memory
sources        the sources of kernels, and a hash of them
folders        folders for compiled kernels
linked         kernels that were linked into a module, and run without Numba
intrinsics     kernels, loads and stores as Numba compiles them
target         what compiled kernels depend on: sources, Python, Numba, a processor
cache          compiled kernels on disk: this machine's, and those that come with the package
link           links compiled kernels into a module, with entries.c
layout         offsets of fields in the descriptors that kernels read
hashing        hash functions and home slots
counting_sort  rows sorted by small integer keys
"""
