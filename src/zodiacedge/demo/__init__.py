"""`make demo`: the wind farm of the paper, end to end.

farm       the wind farm as RDF, and its rules
folder     the folder that the demo leaves behind
farm_map   a picture of the farm
diagnosis  diagnosis rules, inserted and deleted again on a turbine
story      the scenario, step by step
fleet      a hub and three agents as processes
command    `zodiac demo`
"""
