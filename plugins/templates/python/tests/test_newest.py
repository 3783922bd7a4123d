import unittest

from newest import keep_last_turn, oldest_kept


class Conversation:
    """Some turns of 2 messages after a seed pair, and a question; before it, for its sake, messages of the origins
    `shown`. Each message has 10 tokens and 3,000 characters."""

    def __init__(self, turns: int, shown: bytes = b""):
        self.end = 2 + 2 * turns
        self.shown = shown

    def length(self) -> int:
        return self.current() + 1

    def tokens(self, start: int, end: int) -> list[int]:
        return [10] * (end - start)

    def chars(self, start: int, end: int) -> list[int]:
        return [3_000] * (end - start)

    def origins(self, start: int, end: int) -> bytes:
        return (bytes([1] * self.end) + self.shown + bytes([1]))[start:end]

    def seed_end(self) -> int:
        return 2

    def current(self) -> int:
        return self.end + len(self.shown)

    def cuts(self, before: int, most: int) -> list[int]:
        return [cut for cut in range(self.end - 2, 1, -2) if cut < before][:most]


class Budget:
    def __init__(self, limit: int):
        self.tokens = limit

    def limit(self) -> int:
        return self.tokens

    def marker_tokens(self) -> int:
        return 10


class Plan:
    """Holds its edits. `costs` are what the request costs, one look after the other."""

    def __init__(self, *costs: int):
        self.costs = list(costs)
        self.edits = []

    def clear(self) -> None:
        self.edits = []

    def remove(self, start: int, end: int) -> None:
        self.edits.append(("remove", start, end))

    def shorten(self, index: int, head: int, tail: int) -> None:
        self.edits.append(("shorten", index, head, tail))

    def tokens(self) -> int:
        return self.costs.pop(0)


class OldestKept(unittest.TestCase):
    def test_as_many_turns_stay_as_are_to_be_kept(self):
        self.assertEqual(oldest_kept(Conversation(30), Budget(100_000), 5), 2 + 2 * 25)

    def test_no_more_stay_than_fit(self):
        self.assertEqual(oldest_kept(Conversation(30), Budget(100), 5), 2 + 2 * 27)
        self.assertEqual(oldest_kept(Conversation(30), Budget(10), 5), 2 + 2 * 30)

    def test_what_came_with_the_question_stays_with_it(self):
        shown = bytes([7, 10, 11])
        self.assertEqual(oldest_kept(Conversation(30, shown), Budget(120), 5), 2 + 2 * 28)
        self.assertEqual(oldest_kept(Conversation(30, shown), Budget(60), 5), 2 + 2 * 30)
        self.assertEqual(oldest_kept(Conversation(0, shown), Budget(10), 5), 2)


class KeepLastTurn(unittest.TestCase):
    def test_a_last_turn_that_does_not_fit_whole_is_shortened(self):
        plan = Plan(200, 90)
        self.assertTrue(keep_last_turn(Conversation(30), Budget(100), plan, 5))
        self.assertEqual(plan.edits, [("remove", 2, 60), ("shorten", 60, 1_334, 666), ("shorten", 61, 1_334, 666)])

    def test_of_the_turns_before_it_as_many_stay_as_fit(self):
        shortened = [("shorten", 60, 1_334, 666), ("shorten", 61, 1_334, 666)]
        for keep, costs, end in [(5, (100,), 56), (2, (80,), 58), (5, (110, 60), 60)]:
            plan = Plan(200, 60, *costs)
            self.assertTrue(keep_last_turn(Conversation(30), Budget(100), plan, keep))
            self.assertEqual(plan.edits, [("remove", 2, end), *shortened])

    def test_the_only_turn_is_shortened_and_nothing_goes(self):
        plan = Plan(200, 90)
        self.assertTrue(keep_last_turn(Conversation(1, bytes([7])), Budget(100), plan, 5))
        self.assertEqual(plan.edits, [("shorten", 2, 1_334, 666), ("shorten", 3, 1_334, 666)])

    def test_where_that_is_not_enough_nothing_is_planned(self):
        plan = Plan(200, 200, 200)
        self.assertFalse(keep_last_turn(Conversation(30), Budget(100), plan, 5))
        self.assertEqual(plan.edits, [])
        self.assertFalse(keep_last_turn(Conversation(0), Budget(100), Plan(), 5))


if __name__ == "__main__":
    unittest.main()
