// 64-bit integers of the contract are BigInt here, 32-bit ones and those in lists are numbers.

const sum = (tokens) => tokens.reduce((total, count) => total + count, 0);

/** Where the stored turns end. */
function storedEnd(transcript) {
  // What came with the new message (origin 7) or was found (10) or recalled (11) for it precedes it and stays.
  let end = transcript.current();
  while (end > transcript.seedEnd() && [7, 10, 11].includes(transcript.origins(end - 1, end)[0])) end -= 1;
  return end;
}

/** Where the newest turns begin that fit beside the seed, the marker and the new message: at most `keep` of them. */
export function oldestKept(transcript, budget, keep) {
  const end = storedEnd(transcript);
  let room = Number(budget.limit()) - budget.markerTokens();
  room -= sum(transcript.tokens(0, transcript.seedEnd())) + sum(transcript.tokens(end, transcript.length()));
  let oldest = end;
  for (const cut of transcript.cuts(end, keep)) {
    room -= sum(transcript.tokens(cut, oldest));
    if (room < 0) break;
    oldest = cut;
  }
  return oldest;
}
