import unittest

from newest import oldest_kept


class Conversation:
    """Some turns of 2 × 10 tokens after a seed pair, and a question."""

    def __init__(self, turns: int):
        self.end = 2 + 2 * turns

    def length(self) -> int:
        return self.end + 1

    def tokens(self, start: int, end: int) -> list[int]:
        return [10] * (end - start)

    def seed_end(self) -> int:
        return 2

    def current(self) -> int:
        return self.end

    def cuts(self, before: int, most: int) -> list[int]:
        return list(range(before - 2, 1, -2))[:most]


class Budget:
    def __init__(self, limit: int):
        self.tokens = limit

    def limit(self) -> int:
        return self.tokens

    def marker_tokens(self) -> int:
        return 10


class OldestKept(unittest.TestCase):
    def test_as_many_turns_stay_as_are_to_be_kept(self):
        self.assertEqual(oldest_kept(Conversation(30), Budget(100_000), 5), 2 + 2 * 25)

    def test_no_more_stay_than_fit(self):
        self.assertEqual(oldest_kept(Conversation(30), Budget(100), 5), 2 + 2 * 27)
        self.assertEqual(oldest_kept(Conversation(30), Budget(10), 5), 2 + 2 * 30)


if __name__ == "__main__":
    unittest.main()
