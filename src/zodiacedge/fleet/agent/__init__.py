"""The agent: runs a store on a device, takes readings, and keeps the packs that the device is to run.

memory      what an agent must not forget when it is killed
link        requests to a hub: enrolment, status, news
activation  a pack on its way: staged, refused, on probation, active, returned
policy      packs that the owner of a device allows without an assignment
published   the facts that a device lets its neighbours see
neighbours  facts of neighbours, as long as they are heard of
discovery   neighbours that announce themselves in the local network
listener    a web server that bounds connections, for the two that follow
relay       metadata and packs for neighbours, and their requests to the hub
sources     readings from standard input, HTTP on this machine, MQTT
agent       the agent, step by step
"""
