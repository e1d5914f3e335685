"""Terms as integers: ids within a process, and fingerprints that are the same in every process.

shared_texts     texts without the bytes that they share with a similar text
intern_kernels   kernels of the dictionary: find a term, or add it
reclaim_kernels  kernels that free the terms that are not in use
dictionary       terms as dense 32-bit ids
order            the total order of terms, on ids
moments          an index of moments in their order
term_space       the terms and buffers that all versions of a state share
fingerprints     63-bit hashes of terms, for Spark
"""
