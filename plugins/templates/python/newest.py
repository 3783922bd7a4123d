"""What is decided."""


def oldest_kept(transcript, budget, keep: int) -> int:
    """Where the newest turns begin that fit beside the seed, the marker and the new message: at most `keep`."""
    current = transcript.current()
    room = budget.limit() - budget.marker_tokens()
    room -= sum(transcript.tokens(0, transcript.seed_end())) + sum(transcript.tokens(current, transcript.length()))
    oldest = current
    for cut in transcript.cuts(current, keep):
        room -= sum(transcript.tokens(cut, oldest))
        if room < 0:
            break
        oldest = cut
    return oldest
