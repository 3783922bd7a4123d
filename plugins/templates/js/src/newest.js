// 64-bit integers of the contract are BigInt here, 32-bit ones and those in lists are numbers.

const sum = (tokens) => tokens.reduce((total, count) => total + count, 0);

/** Where the newest turns begin that fit beside the seed, the marker and the new message: at most `keep` of them. */
export function oldestKept(transcript, budget, keep) {
  const current = transcript.current();
  let room = Number(budget.limit()) - budget.markerTokens();
  room -= sum(transcript.tokens(0, transcript.seedEnd())) + sum(transcript.tokens(current, transcript.length()));
  let oldest = current;
  for (const cut of transcript.cuts(current, keep)) {
    room -= sum(transcript.tokens(cut, oldest));
    if (room < 0) break;
    oldest = cut;
  }
  return oldest;
}
