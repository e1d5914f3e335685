"""Two versions compared without listing their facts.

checksums  where versions differ, by sums of their files
diff       the facts that differ
digest     a digest of all visible facts
"""
