"""Directed graphs of small integers: strongly connected components and topological order.

A graph is a list of successor lists. Nothing here recurses, so a chain of a million vertices is as
good as any other graph. What the vertices stand for is left to the callers.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def components(graph: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the strongly connected components, each after all that it leads to (Tarjan)."""
    unseen = 0
    index = [unseen] * len(graph)
    low = [unseen] * len(graph)
    done = len(graph) + 1  # larger than any index, so a finished vertex lowers nobody
    count = 0
    found: list[list[int]] = []
    stack: list[int] = []
    for start in range(len(graph)):
        if index[start]:
            continue
        count += 1
        index[start] = low[start] = count
        stack.append(start)
        path = [(start, iter(graph[start]))]
        while path:
            vertex, targets = path[-1]
            for target in targets:
                if not index[target]:
                    count += 1
                    index[target] = low[target] = count
                    stack.append(target)
                    path.append((target, iter(graph[target])))
                    break
                low[vertex] = min(low[vertex], low[target])
            else:
                path.pop()
                if path:
                    parent = path[-1][0]
                    low[parent] = min(low[parent], low[vertex])
                if low[vertex] == index[vertex]:
                    component = []
                    while True:
                        member = stack.pop()
                        low[member] = done
                        component.append(member)
                        if member == vertex:
                            break
                    found.append(component)
    return found


def ordered_components(graph: Sequence[Sequence[int]], priority: Sequence[int]) -> list[list[int]]:
    """Return the components in topological order; among those that are ready, lowest priority first.

    A component's priority is the lowest among its vertices.
    """
    found = components(graph)
    home = [0] * len(graph)
    for number, component in enumerate(found):
        for vertex in component:
            home[vertex] = number
    targets = [{home[target] for vertex in component for target in graph[vertex]} for component in found]
    waiting = [0] * len(found)
    for number, leads_to in enumerate(targets):
        leads_to.discard(number)
        for target in leads_to:
            waiting[target] += 1
    urgency = [min(priority[vertex] for vertex in component) for component in found]
    ready = [(urgency[number], number) for number, count in enumerate(waiting) if count == 0]
    heapify(ready)
    order: list[list[int]] = []
    while ready:
        _, number = heappop(ready)
        order.append(found[number])
        for target in targets[number]:
            waiting[target] -= 1
            if waiting[target] == 0:
                heappush(ready, (urgency[target], target))
    return order
