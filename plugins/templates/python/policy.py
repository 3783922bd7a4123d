"""What the gateway calls. What is decided is in newest.py, which can be tested without the gateway."""

# Import at module level: the component is a snapshot of what was imported when it was built.
from wit_world import exports
from wit_world.imports import host

from newest import keep_last_turn, oldest_kept, stored_end


class Describe(exports.Describe):
    def describe(self, description) -> None:
        description.name("{{name}}")
        description.version("0.1.0")
        description.about("keeps the newest turns")
        description.setting_integer("keep-turns", 20, 1, 1_000, "stored turns that stay, as far as they fit")


class Prune(exports.Prune):
    def prune(self, transcript, budget, plan) -> None:
        if plan.tokens() <= budget.limit():
            return
        start = transcript.seed_end()
        keep = host.setting_integer("keep-turns")
        end = oldest_kept(transcript, budget, keep)
        # A last turn that does not fit whole is shortened.
        if end == stored_end(transcript) and keep_last_turn(transcript, budget, plan, keep):
            return
        if start < end:
            plan.remove(start, end)
