"""The embedded engine: compiled kernels on columns of term ids, in one process, without a JVM."""
