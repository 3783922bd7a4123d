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


def keep_last_turn(transcript, budget, plan) -> bool:
    """For a last turn that does not fit whole: everything before it goes, and its messages are shortened until the
    request fits. Whether it does; if not, the plan is empty again."""
    start, end = transcript.seed_end(), stored_end(transcript)
    for last in transcript.cuts(end, 1):
        chars = transcript.chars(last, end)
        for length in LENGTHS:
            plan.clear()
            if start < last:
                plan.remove(start, last)
            for index, count in enumerate(chars, last):
                if count > length:
                    # Two thirds stay from the start, where texts state their subject; one from the end, where logs have
                    # results.
                    plan.shorten(index, length - length // 3, length // 3)
            if plan.tokens() <= budget.limit():
                return True
    plan.clear()
    return False
