import unittest

from newest import oldest_kept


class Conversation:
    """Some turns of 2 × 10 tokens after a seed pair, and a question; before it, for its sake, messages of the origins
    `shown`."""

    def __init__(self, turns: int, shown: bytes = b""):
        self.end = 2 + 2 * turns
        self.shown = shown

    def length(self) -> int:
        return self.current() + 1

    def tokens(self, start: int, end: int) -> list[int]:
        return [10] * (end - start)

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


if __name__ == "__main__":
    unittest.main()
