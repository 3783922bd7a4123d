"""What is decided."""

TOOL_RESULT = 8  # a bit of `transcript.flags`
MARKER = 9  # a code of `transcript.origins`
LENGTHS = (8_000, 2_000, 500)  # to which the messages of a last turn are shortened, in characters, one after the other

Part = tuple[int, int]


def beginnings(setting: str) -> tuple[str, ...]:
    """The words of the setting."""
    return tuple(word for word in (word.strip().lower() for word in setting.split(",")) if word)


def least_missed(transcript, excess: int, failures: tuple[str, ...]) -> list[Part]:
    """Parts that cost at least `excess` tokens together: turns in which a tool failed, then the oldest others."""
    parts = parts_of(transcript)
    tokens = transcript.tokens(0, transcript.current())
    flags = transcript.flags(0, transcript.current())
    origins = transcript.origins(0, transcript.current())
    going: list[Part] = []

    def take(part: Part) -> None:
        nonlocal excess
        going.append(part)
        # A marker stays, or another takes its place.
        excess -= sum(tokens[at] for at in range(*part) if origins[at] != MARKER)

    for start, end in parts:
        if excess <= 0:
            break
        results = (at for at in range(start, end) if flags[at] & TOOL_RESULT)
        if any(transcript.text(at, 0, 80).lstrip().lower().startswith(failures) for at in results):
            take((start, end))
    failed = set(going)
    for part in parts:
        if excess <= 0:
            break
        if part not in failed:
            take(part)
    return sorted(going)


def stored_end(transcript) -> int:
    """Where the stored turns end."""
    # What came with the new message (origin 7) or was found (10) or recalled (11) for it precedes it and stays.
    end = transcript.current()
    while end > transcript.seed_end() and transcript.origins(end - 1, end)[0] in (7, 10, 11):
        end -= 1
    return end


def parts_of(transcript) -> list[Part]:
    """What can go as a whole, oldest first: what stands between the seed and the first turn, then turn by turn."""
    start, end = transcript.seed_end(), stored_end(transcript)
    cuts = sorted(transcript.cuts(end, transcript.length()))
    bounds = sorted({start, end, *(cut for cut in cuts if cut > start)})
    parts = list(zip(bounds, bounds[1:]))
    # A marker alone is the gateway's to replace.
    return [(a, b) for a, b in parts if any(origin != MARKER for origin in transcript.origins(a, b))]


def keep_last_turn(transcript, budget, plan) -> bool:
    """For a last turn that does not fit whole: its messages are shortened until the request fits without older turns, of
    which then as many stay as fit: the newest, also where their tools failed. Whether it fits; if not, the plan is empty
    again."""
    end = stored_end(transcript)
    cuts = list(transcript.cuts(end, transcript.length()))
    if not cuts:
        return False
    last, older = cuts[0], cuts[1:]
    chars = transcript.chars(last, end)

    def shortened(start: int, length: int) -> int:
        plan.clear()
        if transcript.seed_end() < start:
            plan.remove(transcript.seed_end(), start)
        for index, count in enumerate(chars, last):
            if count > length:
                # Two thirds stay from the start, where texts state their subject; one from the end, where logs have
                # results.
                plan.shorten(index, length - length // 3, length // 3)
        return plan.tokens()

    for length in LENGTHS:
        room = budget.limit() - shortened(last, length)
        if room < 0:
            continue
        oldest = last
        for cut in older:
            room -= sum(transcript.tokens(cut, oldest))
            if room < 0:
                break
            oldest = cut
        # Where no turn goes, the marker of an earlier prune stays, which may cost more than a new one.
        limit = budget.limit()
        return oldest == last or shortened(oldest, length) <= limit or shortened(last, length) <= limit
    plan.clear()
    return False
