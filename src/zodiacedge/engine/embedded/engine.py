"""The engine `embedded`: compiled columnar kernels, no JVM, one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.api import materialised
from zodiacedge.engine.embedded.maintain.strategy import Policy
from zodiacedge.engine.embedded.state import EmbeddedState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.engine.api import Settings, State
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Fact, Rule


class EmbeddedEngine:
    """The engine `embedded`."""

    name = "embedded"

    def __init__(
        self, *, modules: bool = True, strategy: str = "choose", backward: bool = True, patience: int = 0
    ) -> None:
        """Say how nodes are evaluated.

        Args:
            modules: Whether nodes of a known shape go to the algorithm made for it.
            strategy: How a node whose rules stay is brought up to date: `maintain`, `recompute`, or `choose`.
            backward: Whether doubtful facts of a recursive node are proved (Backward/Forward), or all deleted
                and derived again where possible (DRed).
            patience: How often the strategy `give up` looks at the clock before it gives a node up.
        """
        self._policy = Policy(modules, strategy, backward, patience)

    def empty(self) -> EmbeddedState:
        """Return a state without rules and facts."""
        return EmbeddedState(policy=self._policy)

    def materialise(
        self,
        rules: Mapping[str, Rule],
        graph: HyperGraph,
        facts: Iterable[Fact],
        settings: Settings,
    ) -> State:
        """Evaluate checked and resolved rules, given by key, over explicit facts."""
        return materialised(self.empty(), rules, graph, facts, settings)

    def recompute(
        self, rules: Mapping[str, Rule], graph: HyperGraph, state: State, settings: Settings
    ) -> State:
        """Evaluate the same over the explicit facts of a state, of any engine."""
        return self.materialise(rules, graph, state.explicit(), settings)
