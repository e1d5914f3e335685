"""A preview of a change, for a person to decide on.

samples  facts that a dry run gains and loses, with what they rest on
page     the preview as an HTML page, with the rule graph
"""
