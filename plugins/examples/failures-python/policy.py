"""What the gateway calls. What is decided is in failures.py, which can be tested without the gateway."""

# Import at module level: the component is a snapshot of what was imported when it was built.
from wit_world import exports
from wit_world.imports import host

from failures import beginnings, keep_last_turn, least_missed, parts_of

INFO = 3


class Describe(exports.Describe):
    def describe(self, description) -> None:
        description.name("failures-python")
        description.version("1.0.0")
        description.about("turns in which a tool failed go first, the oldest before the newer, then the oldest of the others")
        description.setting_text(
            "failures", "error, failed, traceback, exception", "how the results of failed tools begin, whatever the case"
        )


class Prune(exports.Prune):
    def prune(self, transcript, budget, plan) -> None:
        excess = plan.tokens() - budget.limit()
        if excess <= 0:
            return
        going = least_missed(transcript, excess + budget.marker_tokens(), beginnings(host.setting_text("failures")))
        # Where all of it would go, the last turn stays in part.
        if len(going) == len(parts_of(transcript)) and keep_last_turn(transcript, budget, plan):
            return
        for start, end in going:
            plan.remove(start, end)
        host.log(INFO, f"{len(going)} parts of the history go")
