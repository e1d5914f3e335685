"""`make demo`: the wind farm of the paper, end to end.

folder     the folder that the demo leaves behind
map        a picture of the farm
diagnosis  a farm at the centre, slices on turbines, rules that come and go
command    `zodiac demo`: the story
"""
