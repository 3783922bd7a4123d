// 64-bit integers of the contract are BigInt here, 32-bit ones and those in lists are numbers.

const sum = (counts) => counts.reduce((total, count) => total + count, 0);

/** How many characters a channel may keep, and the words of the setting that make no sense. */
export function allowance(channels, channel, otherwise) {
  let chars = otherwise;
  const unread = [];
  for (const word of channels.split(/\s+/).filter(Boolean)) {
    const [, id, count] = /^([^=]+)=(\d+)$/.exec(word) ?? [];
    if (id === undefined) unread.push(word);
    else if (id === channel) chars = Number(count);
  }
  return [chars, unread];
}

/** How many turns are looked at in one read. */
const STEP = 64;

/** Lengths, in characters, to which the messages of a last turn are shortened, one after the other. */
const LENGTHS = [8_000, 2_000, 500];

/** Where the stored turns end. */
export function storedEnd(transcript) {
  // What came with the new message (origin 7) or was found (10) or recalled (11) for it precedes it and stays.
  let end = transcript.current();
  while (end > transcript.seedEnd() && [7, 10, 11].includes(transcript.origins(end - 1, end)[0])) end -= 1;
  return end;
}

/** Where the newest turns begin that together have no more characters than `chars` and fit `room` tokens beside the rest. */
export function oldestKept(transcript, room, chars) {
  const end = storedEnd(transcript);
  room -= sum(transcript.tokens(0, transcript.seedEnd())) + sum(transcript.tokens(end, transcript.length()));
  let oldest = end;
  for (;;) {
    const cuts = transcript.cuts(oldest, STEP);
    for (const cut of cuts) {
      room -= sum(transcript.tokens(cut, oldest));
      chars -= sum(transcript.chars(cut, oldest));
      if (room < 0 || chars < 0) return oldest;
      oldest = cut;
    }
    // What stands between the seed and the first turn stays with it.
    if (cuts.length < STEP) {
      const start = transcript.seedEnd();
      return sum(transcript.tokens(start, oldest)) <= room ? Math.min(start, oldest) : oldest;
    }
  }
}

/**
 * For a last turn that does not fit whole: its messages are shortened until the request fits without older turns and they
 * have no more characters than `chars`. Of the 63 turns before it, as many stay as fit both. Whether it fits; if not,
 * the plan is empty again.
 */
export function keepLastTurn(transcript, budget, plan, chars) {
  const end = storedEnd(transcript);
  const [last, ...older] = transcript.cuts(end, STEP);
  if (last === undefined) return false;
  const counts = transcript.chars(last, end);
  const limit = Number(budget.limit());
  const shortened = (start, length) => {
    plan.clear();
    if (transcript.seedEnd() < start) plan.remove(transcript.seedEnd(), start);
    // Two thirds stay from the start, where texts state their subject; one from the end, where logs have results.
    const tail = Math.floor(length / 3);
    counts.forEach((count, at) => {
      if (count > length) plan.shorten(last + at, length - tail, tail);
    });
    return Number(plan.tokens());
  };
  for (const length of LENGTHS) {
    let left = chars - sum(counts.map((count) => Math.min(count, length)));
    if (left < 0) continue;
    let room = limit - shortened(last, length);
    if (room < 0) continue;
    let oldest = last;
    for (const cut of older) {
      room -= sum(transcript.tokens(cut, oldest));
      left -= sum(transcript.chars(cut, oldest));
      if (room < 0 || left < 0) break;
      oldest = cut;
    }
    // Where no turn goes, the marker of an earlier prune stays, which may cost more than a new one.
    return oldest === last || shortened(oldest, length) <= limit || shortened(last, length) <= limit;
  }
  plan.clear();
  return false;
}
