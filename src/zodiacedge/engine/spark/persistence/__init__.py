"""Persistence of states of the engine `spark` in a store.

files    tasks that read and write the files of a store
adapter  the interface of `engine.persistence`
"""
