import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepLastTurn, oldestKept } from '../src/newest.js';

/**
 * A conversation of so many turns of 2 messages after a seed pair, and a question; before it, for its sake, messages of the
 * origins `shown`. Each message has 10 tokens and 3,000 characters. With a budget.
 */
function conversation(turns, limit, shown = []) {
  const end = 2 + 2 * turns;
  const origins = [...new Array(end).fill(1), ...shown, 1];
  const tokens = origins.map(() => 10);
  const transcript = {
    length: () => tokens.length,
    tokens: (from, to) => Uint32Array.from(tokens.slice(from, to)),
    chars: (from, to) => new Uint32Array(to - from).fill(3_000),
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

/** A plan that holds its edits. `costs` are what the request costs, one look after the other. */
function planned(...costs) {
  const edits = [];
  return {
    edits,
    clear: () => edits.splice(0),
    remove: (from, to) => edits.push(['remove', from, to]),
    shorten: (index, head, tail) => edits.push(['shorten', index, head, tail]),
    tokens: () => BigInt(costs.shift()),
  };
}

test('a last turn that does not fit whole is shortened', () => {
  const plan = planned(200, 90);
  assert.equal(keepLastTurn(...conversation(30, 100), plan, 5), true);
  assert.deepEqual(plan.edits, [['remove', 2, 60], ['shorten', 60, 1_334, 666], ['shorten', 61, 1_334, 666]]);
});

test('of the turns before it, as many stay as fit', () => {
  const shortened = [['shorten', 60, 1_334, 666], ['shorten', 61, 1_334, 666]];
  const after = (keep, ...costs) => {
    const plan = planned(200, 60, ...costs);
    assert.equal(keepLastTurn(...conversation(30, 100), plan, keep), true);
    return plan.edits;
  };
  assert.deepEqual(after(5, 100), [['remove', 2, 56], ...shortened]);
  assert.deepEqual(after(2, 80), [['remove', 2, 58], ...shortened]);
  assert.deepEqual(after(5, 110, 60), [['remove', 2, 60], ...shortened]);
});

test('the only turn is shortened, and nothing goes', () => {
  const plan = planned(200, 90);
  assert.equal(keepLastTurn(...conversation(1, 100, [7]), plan, 5), true);
  assert.deepEqual(plan.edits, [['shorten', 2, 1_334, 666], ['shorten', 3, 1_334, 666]]);
});

test('where that is not enough, nothing is planned', () => {
  const plan = planned(200, 200, 200);
  assert.equal(keepLastTurn(...conversation(30, 100), plan, 5), false);
  assert.deepEqual(plan.edits, []);
  assert.equal(keepLastTurn(...conversation(0, 100), planned(), 5), false);
});
