"""Commands on stores, a module each.

init      make a store
apply     change it
stream    change it by files that arrive
query     ask it
rules     list its rules
stats     rows and bytes
log       its versions
diff      two versions compared
rollback  a new version that equals an earlier one
verify    compare it with an evaluation from scratch
export    its facts or a slice of it, out
vacuum    flush, and remove unused files
"""
