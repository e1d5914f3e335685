"""The rule dependency graph and its hyper-nodes, kept up to date as rules come and go."""
