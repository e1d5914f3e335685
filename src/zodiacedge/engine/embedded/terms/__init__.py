"""Terms as integers: ids within a process, and fingerprints that are the same in every process.

intern_kernels  kernels of the dictionary: find a term, or append it
dictionary      terms as dense 32-bit ids
term_space      the terms and buffers that all versions of a state share
fingerprints    63-bit hashes of terms, for Spark
"""
