// What the gateway calls. What is decided is in newest.js, which can be tested without the gateway.

import { settingInteger } from 'pmk:policy/host@{{contract}}';
import { keepLastTurn, oldestKept, storedEnd } from './newest.js';

export const describe = {
  describe(description) {
    description.name('{{name}}');
    description.version('0.1.0');
    description.about('keeps the newest turns');
    description.settingInteger('keep-turns', 20n, 1n, 1000n, 'stored turns that stay, as far as they fit');
  },
};

export const prune = {
  prune(transcript, budget, plan) {
    if (plan.tokens() <= budget.limit()) return;
    const start = transcript.seedEnd();
    const keep = Number(settingInteger('keep-turns'));
    const end = oldestKept(transcript, budget, keep);
    // A last turn that does not fit whole is shortened.
    if (end === storedEnd(transcript) && keepLastTurn(transcript, budget, plan, keep)) return;
    if (start < end) plan.remove(start, end);
  },
};
