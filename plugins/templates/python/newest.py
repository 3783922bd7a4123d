"""What is decided."""


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
