"""The data source `zodiac` of Spark: stores as tables and streams, by PySpark's Python data source API.

Its classes run in processes of Spark: one that plans, tasks, and one beside the driver that follows a stream.
Each opens the store by its address, with the embedded engine.

    options  the options of a table or stream, and its columns
    rows     facts as rows of a schema
    read     a table of one version, with pushed-down filters
    feed     the stream of net changes of a store
    sink     a table or a stream into a store, exactly once
    source   the data source, which users register
"""
