"""Programs and generated data that the demo, the benchmarks and the tests share.

paper            the rule sets RS1, RS2 and RS3 of the paper
graphs           closures, same generation, points-to
lubm             LUBM: 128 rules on universities
lubm_university  the data of one university
lubm_files       LUBM from files of other generators
farm             the wind farm
churn            links for many small changes
"""
