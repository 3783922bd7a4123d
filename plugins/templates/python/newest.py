"""What is decided."""

LENGTHS = (8_000, 2_000, 500)  # to which the messages of a last turn are shortened, in characters, one after the other


def stored_end(transcript) -> int:
    """Where the stored turns end."""
    # What came with the new message (origin 7) or was found (10) or recalled (11) for it precedes it and stays.
    end = transcript.current()
    while end > transcript.seed_end() and transcript.origins(end - 1, end)[0] in (7, 10, 11):
        end -= 1
    return end


def oldest_kept(transcript, budget, keep: int) -> int:
    """Where the newest turns begin that fit beside the seed, the marker and the new message: at most `keep`."""
    end = stored_end(transcript)
    room = budget.limit() - budget.marker_tokens()
    room -= sum(transcript.tokens(0, transcript.seed_end())) + sum(transcript.tokens(end, transcript.length()))
    oldest = end
    for cut in transcript.cuts(end, keep):
        room -= sum(transcript.tokens(cut, oldest))
        if room < 0:
            break
        oldest = cut
    return oldest


def keep_last_turn(transcript, budget, plan, keep: int) -> bool:
    """For a last turn that does not fit whole: its messages are shortened until the request fits without older turns, of
    which then as many stay as fit, `keep` turns in all. Whether it fits; if not, the plan is empty again."""
    end = stored_end(transcript)
    cuts = list(transcript.cuts(end, keep))
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
