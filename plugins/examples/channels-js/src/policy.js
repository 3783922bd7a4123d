// What the gateway calls. What is decided is in allowance.js, which can be tested without the gateway.

import { log, settingInteger, settingText } from 'pmk:policy/host@1.2.0';
import { allowance, keepLastTurn, oldestKept, storedEnd } from './allowance.js';

const WARN = 2;

export const describe = {
  describe(description) {
    description.name('channels-js');
    description.version('1.0.0');
    description.about('keeps the newest turns, in each channel as many characters as it is allowed');
    description.settingInteger('chars', 60_000n, 0n, 10_000_000n, 'characters of stored turns that stay, in every other channel');
    description.settingText('channels', '', 'what channels have of their own, as `C0123456789=200000 C9876543210=5000`');
  },
};

export const prune = {
  prune(transcript, budget, plan) {
    const [chars, unread] = allowance(settingText('channels'), transcript.channel(), Number(settingInteger('chars')));
    for (const word of unread) log(WARN, `\`${word}\` in \`channels\` is not \`ID=CHARACTERS\``);
    const end = oldestKept(transcript, Number(budget.limit()) - budget.markerTokens(), chars);
    const start = transcript.seedEnd();
    // A last turn that does not fit whole is shortened.
    const shortened = end === storedEnd(transcript) && keepLastTurn(transcript, budget, plan, chars);
    if (!shortened && start < end) plan.remove(start, end);
    // What goes may cost less than the marker that stands for it; then all of it stays, if it fits.
    if (plan.tokens() > transcript.totalTokens()) plan.clear();
  },
};
