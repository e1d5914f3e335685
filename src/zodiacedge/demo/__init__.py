"""`make demo`: the wind farm of the paper, end to end.

folder     the folder that the demo leaves behind
farm_map   a picture of the farm
diagnosis  diagnosis rules, inserted and deleted again on a turbine
story      the scenario, step by step
command    `zodiac demo`
"""
