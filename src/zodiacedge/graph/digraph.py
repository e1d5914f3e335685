"""Directed graphs of small integers: strongly connected components and topological order.

A graph is a list of successor lists. The functions are iterative, so long chains do not overflow the
stack.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def components(graph: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the strongly connected components in reverse topological order (Tarjan)."""
    unseen = 0
    index = [unseen] * len(graph)
    low = [unseen] * len(graph)
    done = len(graph) + 1  # larger than any index, so a finished vertex lowers no other
    count = 0
    result: list[list[int]] = []
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
                    result.append(component)
    return result


def ordered_components(graph: Sequence[Sequence[int]], priority: Sequence[int]) -> list[list[int]]:
    """Return the components in topological order; among ready ones, lowest priority first.

    A component's priority is the lowest among its vertices.
    """
    unordered = components(graph)
    home = [0] * len(graph)
    for number, component in enumerate(unordered):
        for vertex in component:
            home[vertex] = number
    targets = [{home[target] for vertex in component for target in graph[vertex]} for component in unordered]
    waiting = [0] * len(unordered)
    for number, successors in enumerate(targets):
        successors.discard(number)
        for target in successors:
            waiting[target] += 1
    priorities = [min(priority[vertex] for vertex in component) for component in unordered]
    ready = [(priorities[number], number) for number, count in enumerate(waiting) if count == 0]
    heapify(ready)
    order: list[list[int]] = []
    while ready:
        _, number = heappop(ready)
        order.append(unordered[number])
        for target in targets[number]:
            waiting[target] -= 1
            if waiting[target] == 0:
                heappush(ready, (priorities[target], target))
    return order
