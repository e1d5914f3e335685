"""Text to checked syntax tree: ast, parser, printer, canonical form, checks."""
