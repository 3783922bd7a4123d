import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allowance, keepLastTurn, oldestKept } from '../src/allowance.js';

test('a channel has what it is given, every other one the rest', () => {
  assert.deepEqual(allowance('C0123456789=9000 C9876543210=10', 'C0123456789', 5), [9000, []]);
  assert.deepEqual(allowance('C0123456789=9000 C9876543210=10', 'C9876543210', 5), [10, []]);
  assert.deepEqual(allowance('C0123456789=9000 C9876543210=10', 'D0123456789', 5), [5, []]);
  assert.deepEqual(allowance('', '', 5), [5, []]);
});

test('what makes no sense is told', () => {
  assert.deepEqual(allowance('C1 C2=x =3 C3=1', 'C3', 5), [1, ['C1', 'C2=x', '=3']]);
});

/**
 * So many turns of 2 messages after a seed pair, and a question; before it, for its sake, messages of the origins `shown`.
 * Each message has 10 tokens and `chars` characters.
 */
function conversation(turns, shown = [], chars = 40) {
  const end = 2 + 2 * turns;
  const origins = [...new Array(end).fill(1), ...shown, 1];
  const column = (value) => (from, to) => new Uint32Array(Math.max(0, to - from)).fill(value);
  return {
    length: () => origins.length,
    tokens: column(10),
    chars: column(chars),
    origins: (from, to) => Uint8Array.from(origins.slice(from, to)),
    seedEnd: () => 2,
    current: () => end + shown.length,
    cuts: (before, max) => {
      const starts = [];
      for (let at = Math.min(before, end) - 2; at >= 2 && starts.length < max; at -= 2) starts.push(at);
      return Uint32Array.from(starts);
    },
  };
}

test('the newest turns stay that have no more characters', () => {
  assert.equal(oldestKept(conversation(200), 1_000_000, 80 * 150), 2 + 2 * 50);
  assert.equal(oldestKept(conversation(200), 1_000_000, 0), 2 + 2 * 200);
  assert.equal(oldestKept(conversation(200), 1_000_000, 1_000_000), 2);
});

test('and no more than fit', () => {
  assert.equal(oldestKept(conversation(200), 30 + 20 * 3, 1_000_000), 2 + 2 * 197);
});

test('what came with the question stays with it', () => {
  const shown = [7, 10, 11];
  assert.equal(oldestKept(conversation(200, shown), 60 + 20 * 3, 1_000_000), 2 + 2 * 197);
  assert.equal(oldestKept(conversation(200, shown), 60, 1_000_000), 2 + 2 * 200);
  assert.equal(oldestKept(conversation(200, shown), 1_000_000, 80), 2 + 2 * 199);
});

/** A plan that holds its edits, and a request that always costs `tokens`. */
function planned(tokens) {
  const edits = [];
  return {
    edits,
    clear: () => edits.splice(0),
    remove: (from, to) => edits.push(['remove', from, to]),
    shorten: (index, head, tail) => edits.push(['shorten', index, head, tail]),
    tokens: () => BigInt(tokens),
  };
}

test('a last turn that does not fit whole is shortened', () => {
  const budget = { limit: () => 100n };
  const kept = (chars, tokens) => {
    const plan = planned(tokens);
    return [keepLastTurn(conversation(3, [7], 9_000), budget, plan, chars), plan.edits];
  };
  const shortened = [['remove', 2, 6], ['shorten', 6, 1_334, 666], ['shorten', 7, 1_334, 666]];
  assert.deepEqual(kept(5_000, 90), [true, shortened]);
  assert.deepEqual(kept(5_000, 101), [false, []]);
  assert.deepEqual(kept(900, 90), [false, []]);
});

test('of the turns before it, as many stay as fit', () => {
  const long = conversation(3, [], 1_000);
  const kept = (limit, chars) => {
    const plan = planned(limit - 40);
    assert.equal(keepLastTurn(long, { limit: () => BigInt(limit) }, plan, chars), true);
    return plan.edits;
  };
  assert.deepEqual(kept(100, 2_000), [['remove', 2, 6]]);
  assert.deepEqual(kept(100, 4_000), [['remove', 2, 4]]);
  assert.deepEqual(kept(100, 6_000), []);
});
