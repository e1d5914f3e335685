"""Commands on stores, one module each.

init      create a store
apply     change a store
stream    change a store with each batch of files that arrives
query     answer a query
watch     print facts as other processes insert and delete them
rules     list the rules
stats     show rows and bytes
log       list the versions
diff      compare two versions
tick      move the clock
rollback  create a new version that equals an earlier one
verify    compare a store with an evaluation from scratch
export    write facts to files, or a slice to a new store
retain    say or set how long versions are kept
vacuum    flush the log, and remove unused files
"""
