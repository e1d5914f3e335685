"""Programs and data that the demo, the benchmarks and the tests share, made anew each time."""
