"""Comparison of two versions without listing their facts.

checksums  mismatches of two versions, by checksums of their files
diff       the facts that only one of two versions has
digest     a digest of all visible facts
"""
