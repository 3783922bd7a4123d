import assert from 'node:assert/strict';
import { test } from 'node:test';
import { oldestKept } from '../src/newest.js';

/** A conversation of so many turns of 2 × 10 tokens after a seed pair, and a question; with a budget. */
function conversation(turns, limit) {
  const current = 2 + 2 * turns;
  const tokens = new Array(current + 1).fill(10);
  const transcript = {
    length: () => tokens.length,
    tokens: (start, end) => Uint32Array.from(tokens.slice(start, end)),
    seedEnd: () => 2,
    current: () => current,
    cuts: (before, max) => {
      const starts = tokens.map((_, index) => index).filter((index) => index >= 2 && index < before && index % 2 === 0);
      return Uint32Array.from(starts.reverse().slice(0, max));
    },
  };
  return [transcript, { limit: () => BigInt(limit), markerTokens: () => 10 }];
}

test('as many turns stay as are to be kept', () => {
  assert.equal(oldestKept(...conversation(30, 100_000), 5), 2 + 2 * 25);
});

test('no more stay than fit', () => {
  assert.equal(oldestKept(...conversation(30, 100), 5), 2 + 2 * 27);
  assert.equal(oldestKept(...conversation(30, 10), 5), 2 + 2 * 30);
});
