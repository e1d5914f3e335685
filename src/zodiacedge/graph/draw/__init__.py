"""The rule graph as text, DOT, JSON, SVG and HTML.

names   names of rules and predicates in messages and drawings
sketch  the content of every drawing: hyper-nodes, levels, edges, numbers of facts
part    the parts of a graph that a drawing may be limited to
show    text, DOT and JSON
layout  positions of boxes and arrows, by grandalf
svg     the picture
page    one HTML page to pan, zoom, search and fold; its style and script are in `web/`
"""
