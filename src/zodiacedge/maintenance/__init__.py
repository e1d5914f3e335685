"""Changes of rules and facts, and what they make of the materialisation."""
