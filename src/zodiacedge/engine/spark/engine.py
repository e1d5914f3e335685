"""The engine `spark`, and the options that users set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.api import Progress, materialised
from zodiacedge.engine.embedded.terms.fingerprints import MOST_BITS
from zodiacedge.engine.spark.cluster.jobs import Jobs
from zodiacedge.engine.spark.cluster.runner import refuse_stopped
from zodiacedge.engine.spark.cluster.session import Cluster, refuse_other_than_session
from zodiacedge.engine.spark.state import SparkState
from zodiacedge.engine.spark.storage.terms import Hashing
from zodiacedge.engine.spark.storage.workspace import SETTABLE, Options, Workspace
from zodiacedge.errors import Diagnostic, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import SparkSession

    from zodiacedge.engine.api import Settings, State
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Fact, Rule


class SparkEngine:
    """The engine `spark`."""

    name = "spark"

    def __init__(  # noqa: PLR0913 - each is an option that users set alone
        self,
        master: str = "",
        *,
        scratch: str = "",
        seed: int = 0,
        bits: int = MOST_BITS,
        options: Options | None = None,
        cluster: Cluster | None = None,
        session: SparkSession | None = None,
    ) -> None:
        """Configure the engine; Spark starts on first use.

        Args:
            master: The master's URL: `local[*]` if none is given and no session is active. Another than
                that of an active session is refused.
            scratch: A folder for working files that the driver and all executors see, as a path or a URI; on
                one machine the default is the system's folder for temporary files.
            seed: The seed of the fingerprints; another one helps if two terms share a fingerprint.
            bits: The number of bits of a fingerprint.
            options: Options for the evaluation of nodes, and settings of Spark.
            cluster: The cluster with settings of Spark, instead of `master` and those of the options.
            session: A session of the user, instead of `master`; it stays as it is.

        Options that have their default are those of the settings `spark.zodiac.*`, if they are known already.
        """
        if not 1 <= bits <= MOST_BITS:
            message = f"a fingerprint has 1 to {MOST_BITS} bits, not {bits}"
            raise UsageProblem(Diagnostic("U013", message, "leave bits out"))
        if not -(2**MOST_BITS) <= seed < 2**MOST_BITS:
            message = f"a seed is a number of 64 bits, and {seed} has more"
            raise UsageProblem(Diagnostic("U013", message, "any other number will do: seed=1"))
        options = options or Options()
        if session is not None:
            _refuse_no_session(session, master, options)
            refuse_stopped(session)
        cluster = cluster or Cluster(master, options.settings, options.ship, session)
        cluster.refuse_another()
        if not scratch and not cluster.is_here:
            message = "Spark's executors are on other machines, and no folder is named that all of them see"
            note = (
                "name one: scratch=…, or --scratch URI: on a shared file system, or hdfs://…, s3://…, gs://…"
            )
            raise UsageProblem(Diagnostic("U023", message, note))
        options = _with_settings(options, cluster)
        self._workspace = Workspace(Jobs(cluster), scratch, Hashing(seed, bits), options)

    @property
    def jobs(self) -> Jobs:
        """The jobs of this engine."""
        return self._workspace.jobs

    def refuse_if_missing(self) -> None:
        """Raise if software that Spark needs is not installed."""
        self.jobs.cluster.refuse_if_missing()

    def tell(self, progress: Callable[[Progress], None]) -> None:
        """Report the purpose of each job that is not part of a change; a change reports its own progress."""
        self.jobs.tell_otherwise(
            lambda why: progress(Progress.of_stage(why)),
            lambda why, done, tasks: progress(Progress.of_stage(why, done, tasks, "task")),
        )

    def empty(self) -> SparkState:
        """Return a state without rules and facts."""
        return SparkState(self._workspace)

    def materialise(
        self,
        rules: Mapping[str, Rule],
        graph: HyperGraph,
        facts: Iterable[Fact],
        settings: Settings,
    ) -> State:
        """Evaluate checked and resolved rules, by key, over explicit facts."""
        return materialised(self.empty(), rules, graph, facts, settings)

    def recompute(
        self, rules: Mapping[str, Rule], graph: HyperGraph, state: State, settings: Settings
    ) -> State:
        """Evaluate rules from scratch over the explicit facts of a state, of any engine."""
        if isinstance(state, SparkState) and state.workspace is self._workspace:
            return state.recompute(rules, graph, settings)
        return self.materialise(rules, graph, state.explicit(), settings)


def _with_settings(options: Options, cluster: Cluster) -> Options:
    """Return options with the settings `spark.zodiac.*` in place of defaults."""
    known = cluster.known_settings("spark.zodiac.")
    chosen = {name for name in SETTABLE if getattr(options, name) != getattr(Options, name)}
    return options.updated({name: text for name, text in known.items() if name not in chosen})


def _refuse_no_session(session: object, master: str, options: Options) -> None:
    """Raise if what a user hands over is no session, or is to be changed."""
    refuse_other_than_session(session)
    if master or options.settings:
        extra = "a master" if master else "settings of Spark"
        hint = "leave them out: the session has its own, and stays as it is"
        raise UsageProblem(Diagnostic("U013", f"a session was handed over, and {extra} as well", hint))
