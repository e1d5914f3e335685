"""Commands on the installation.

completion  prints the scripts of shells
warm        compiles the kernels
"""
