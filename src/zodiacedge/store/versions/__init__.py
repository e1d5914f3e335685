"""Operations on the versions of a store.

restore  loads the rule base and the state of a commit
replay   converts log records to changes, to apply or to undo them
diff     compares two versions
vacuum   removes the files that no version needs
"""
