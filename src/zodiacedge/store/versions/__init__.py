"""Operations on the versions of a store.

restore       loads the rule base and the state of a commit
replay        converts log records to changes, to apply or to undo them
diff          compares two versions
fact_history  single facts: who stated them, which versions changed them
vacuum        removes the files that no version needs
retention     how long versions are kept, and when a vacuum is due by itself
"""
