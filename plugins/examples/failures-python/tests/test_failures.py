import unittest

from failures import beginnings, keep_last_turn, least_missed, parts_of


class Conversation:
    """Turns of a question, a call, its result and an answer, each of 10 tokens and 3,000 characters, after a seed pair; and a
    question; before it, for its sake, messages of the origins `shown`."""

    def __init__(self, *results: str, shown: bytes = b""):
        self.results = results
        self.shown = shown
        self.end = 2 + 4 * len(results)

    def length(self) -> int:
        return self.current() + 1

    def current(self) -> int:
        return self.end + len(self.shown)

    def seed_end(self) -> int:
        return 2

    def cuts(self, before: int, most: int) -> list[int]:
        return [cut for cut in range(self.end - 4, 1, -4) if cut < before][:most]

    def tokens(self, start: int, end: int) -> list[int]:
        return [10] * (end - start)

    def chars(self, start: int, end: int) -> list[int]:
        return [3_000] * (end - start)

    def flags(self, start: int, end: int) -> bytes:
        return bytes(8 if at >= 2 and at % 4 == 0 else 0 for at in range(start, end))

    def origins(self, start: int, end: int) -> bytes:
        return (bytes([1] * self.end) + self.shown + bytes([1]))[start:end]

    def text(self, index: int, start: int, most: int) -> str:
        return self.results[(index - 2) // 4][start : start + most]


class Budget:
    def limit(self) -> int:
        return 100


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


FAILURES = beginnings("error, Traceback")


class LeastMissed(unittest.TestCase):
    def test_parts_cover_what_is_stored(self):
        self.assertEqual(parts_of(Conversation("a", "b")), [(2, 6), (6, 10)])

    def test_what_came_with_the_question_stays_with_it(self):
        shown = bytes([7, 10, 11])
        self.assertEqual(parts_of(Conversation("a", "b", shown=shown)), [(2, 6), (6, 10)])
        self.assertEqual(parts_of(Conversation(shown=shown)), [])

    def test_failed_turns_go_first(self):
        conversation = Conversation("fine", " ERROR: no such file", "fine", "Traceback (most recent call last)")
        self.assertEqual(least_missed(conversation, 30, FAILURES), [(6, 10)])
        self.assertEqual(least_missed(conversation, 80, FAILURES), [(6, 10), (14, 18)])

    def test_then_the_oldest_of_the_others(self):
        conversation = Conversation("fine", "error", "fine")
        self.assertEqual(least_missed(conversation, 80, FAILURES), [(2, 6), (6, 10)])

    def test_without_a_word_nothing_counts_as_failed(self):
        self.assertEqual(least_missed(Conversation("fine", ""), 10, beginnings(" , ")), [(2, 6)])


class KeepLastTurn(unittest.TestCase):
    def test_a_last_turn_that_does_not_fit_whole_is_shortened(self):
        plan = Plan(200, 90)
        self.assertTrue(keep_last_turn(Conversation("a", "b", shown=bytes([7])), Budget(), plan))
        shortened = [("shorten", at, 1_334, 666) for at in range(6, 10)]
        self.assertEqual(plan.edits, [("remove", 2, 6), *shortened])

    def test_of_the_turns_before_it_as_many_stay_as_fit(self):
        plan = Plan(200, 60, 100)
        self.assertTrue(keep_last_turn(Conversation("a", "b"), Budget(), plan))
        self.assertEqual(plan.edits, [("shorten", at, 1_334, 666) for at in range(6, 10)])

    def test_where_that_is_not_enough_nothing_is_planned(self):
        plan = Plan(200, 200, 200)
        self.assertFalse(keep_last_turn(Conversation("a", "b"), Budget(), plan))
        self.assertEqual(plan.edits, [])
        self.assertFalse(keep_last_turn(Conversation(), Budget(), Plan()))


if __name__ == "__main__":
    unittest.main()
