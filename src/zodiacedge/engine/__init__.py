"""Engines that evaluate programs; `reference` is the definition of right."""
