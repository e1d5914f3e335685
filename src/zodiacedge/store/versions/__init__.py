"""Versions of a store: restored, replayed, compared, vacuumed.

restore  a commit to a rule base and a state
replay   records to changes: to apply again, or to undo
diff     two versions compared
vacuum   files that no version needs, removed
"""
