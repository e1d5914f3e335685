"""Programs and generated data of the benchmarks, which the tests use too.

rule_files       the texts of the programs
paper            the rule sets RS1, RS2 and RS3 of the paper
graphs           closures, same generation, points-to
lubm             LUBM: 128 rules on universities
lubm_university  the data of one university
lubm_files       LUBM from files of other generators
churn            links for many small changes
tables           facts that are tables and triples alike
"""
