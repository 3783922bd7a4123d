import assert from 'node:assert/strict';
import { test } from 'node:test';
import { oldestKept } from '../src/newest.js';

/**
 * A conversation of so many turns of 2 × 10 tokens after a seed pair, and a question; before it, for its sake, messages of the
 * origins `shown`. With a budget.
 */
function conversation(turns, limit, shown = []) {
  const end = 2 + 2 * turns;
  const origins = [...new Array(end).fill(1), ...shown, 1];
  const tokens = origins.map(() => 10);
  const transcript = {
    length: () => tokens.length,
    tokens: (from, to) => Uint32Array.from(tokens.slice(from, to)),
    origins: (from, to) => Uint8Array.from(origins.slice(from, to)),
    seedEnd: () => 2,
    current: () => end + shown.length,
    cuts: (before, max) => {
      const starts = Array.from({ length: turns }, (_, turn) => 2 + 2 * turn).filter((start) => start < before);
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

test('what came with the question stays with it', () => {
  assert.equal(oldestKept(...conversation(30, 120, [7, 10, 11]), 5), 2 + 2 * 28);
  assert.equal(oldestKept(...conversation(30, 60, [7, 10, 11]), 5), 2 + 2 * 30);
  assert.equal(oldestKept(...conversation(0, 10, [7]), 5), 2);
});
