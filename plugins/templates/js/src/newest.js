// 64-bit integers of the contract are BigInt here, 32-bit ones and those in lists are numbers.

const sum = (tokens) => tokens.reduce((total, count) => total + count, 0);

/** Lengths, in characters, to which the messages of a last turn are shortened, one after the other. */
const LENGTHS = [8_000, 2_000, 500];

/** Where the stored turns end. */
export function storedEnd(transcript) {
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

/**
 * For a last turn that does not fit whole: its messages are shortened until the request fits without older turns, of which
 * then as many stay as fit, `keep` turns in all. Whether it fits; if not, the plan is empty again.
 */
export function keepLastTurn(transcript, budget, plan, keep) {
  const end = storedEnd(transcript);
  const [last, ...older] = transcript.cuts(end, keep);
  if (last === undefined) return false;
  const chars = transcript.chars(last, end);
  const limit = Number(budget.limit());
  const shortened = (start, length) => {
    plan.clear();
    if (transcript.seedEnd() < start) plan.remove(transcript.seedEnd(), start);
    // Two thirds stay from the start, where texts state their subject; one from the end, where logs have results.
    const tail = Math.floor(length / 3);
    chars.forEach((count, at) => {
      if (count > length) plan.shorten(last + at, length - tail, tail);
    });
    return Number(plan.tokens());
  };
  for (const length of LENGTHS) {
    let room = limit - shortened(last, length);
    if (room < 0) continue;
    let oldest = last;
    for (const cut of older) {
      room -= sum(transcript.tokens(cut, oldest));
      if (room < 0) break;
      oldest = cut;
    }
    // Where no turn goes, the marker of an earlier prune stays, which may cost more than a new one.
    return oldest === last || shortened(oldest, length) <= limit || shortened(last, length) <= limit;
  }
  plan.clear();
  return false;
}
