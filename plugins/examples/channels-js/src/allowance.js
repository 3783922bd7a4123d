// 64-bit integers of the contract are BigInt here, 32-bit ones and those in lists are numbers.

const sum = (counts) => counts.reduce((total, count) => total + count, 0);

/** How many characters a channel may keep, and the words of the setting that make no sense. */
export function allowance(channels, channel, otherwise) {
  let chars = otherwise;
  const unread = [];
  for (const word of channels.split(/\s+/).filter(Boolean)) {
    const [, name, count] = /^#?([^=]+)=(\d+)$/.exec(word) ?? [];
    if (name === undefined) unread.push(word);
    else if (name === channel) chars = Number(count);
  }
  return [chars, unread];
}

/** How many turns are looked at in one read. */
const STEP = 64;

/** Where the newest turns begin that together have no more characters than `chars` and fit `room` tokens beside the rest. */
export function oldestKept(transcript, room, chars) {
  const current = transcript.current();
  room -= sum(transcript.tokens(0, transcript.seedEnd())) + sum(transcript.tokens(current, transcript.length()));
  let oldest = current;
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
