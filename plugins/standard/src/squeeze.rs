//! Plans for when even the last turn is too large: increasingly harsh drafts, of which the first that fits is used.

use pmk_policy_sdk::{Budget, Plan, Row, Rows, Transcript, origin, tokens_of};

use crate::results::Shape;

/// Lengths, in characters, to which everything but the new message is shortened at last.
const LENGTHS: [u32; 4] = [4_000, 1_000, 200, 0];

/// Lengths, in characters, to which the texts of a last turn are shortened before it is removed.
const TEXT_LENGTHS: [u32; 2] = [4_000, 1_000];

/// A plan to try.
#[derive(Clone, Debug, Default)]
struct Draft {
    /// The first stored message that stays.
    cut: u32,
    /// Messages within turns that are removed, with their whole tool groups; ascending.
    removed: Vec<u32>,
    /// Messages that are shortened: index, head and tail; ascending.
    shortened: Vec<(u32, u32, u32)>,
    /// Messages that are digested and not shortened; ascending.
    digested: Vec<u32>,
    /// Whether the seed pair is removed.
    without_seed: bool,
}

impl Draft {
    /// The estimated cost of a message that stays; `shortened` returns that of a shortened one. A digest costs hardly
    /// anything.
    fn cost_of(&self, row: &Row, shortened: fn(Shape, &Row) -> u64) -> u64 {
        if self.digested.binary_search(&row.index).is_ok() {
            return 0;
        }
        match self.shortened.binary_search_by_key(&row.index, |(index, ..)| *index) {
            Ok(at) => {
                let (_, head, tail) = self.shortened[at];
                shortened(Shape { head, tail }, row)
            }
            Err(_) => u64::from(row.tokens),
        }
    }
}

/// The input of the ladder.
struct Squeeze<'t> {
    transcript: &'t Transcript,
    plan: &'t Plan,
    limit: u64,
    /// What the request may cost with older turns.
    aim: u64,
    shape: Shape,
    seed: Vec<Row>,
    /// Whether there is a seed pair and the operator allows it to be removed.
    seed_may_go: bool,
    /// The most recent stored turn.
    last: Rows,
    /// What came with the new message.
    attached: Vec<Row>,
    /// The messages that the host shows only for the new message.
    shown: Vec<Row>,
    /// The new message and what its turn has produced so far.
    current: Vec<Row>,
}

/// Plans the mildest request that fits the hard limit, with as many older turns as `aim` has room for. If nothing fits,
/// the plan stays empty: then the new message by itself is too large, and only the host can report that.
pub fn fit(transcript: &Transcript, budget: &Budget, plan: &Plan, aim: u64) {
    let last = transcript.segments().next().filter(|segment| segment.turns() > 0);
    let beside = transcript.rows(transcript.stored_end(), transcript.current());
    let (attached, shown) = beside.into_iter().partition(|row| row.origin == origin::ATTACHMENT);
    let squeeze = Squeeze {
        transcript,
        plan,
        limit: budget.limit(),
        aim,
        shape: Shape::of_settings(),
        seed: transcript.rows(0, transcript.seed_end()),
        seed_may_go: budget.seed_may_go() && transcript.seed_end() > 0,
        last: last.map(|segment| segment.rows).unwrap_or_default(),
        attached,
        shown,
        current: transcript.rows(transcript.current(), transcript.length()),
    };
    let fits = squeeze.keeping_last_turn() || squeeze.keeping_current_turn();
    if !fits {
        plan.clear();
    }
}

impl Squeeze<'_> {
    /// Keeps the last turn: shrinks its results, then those of the current turn, then removes its oldest tool groups,
    /// then shortens its texts, and at last digests its attachments: an image cannot be shortened.
    fn keeping_last_turn(&self) -> bool {
        let Some(first) = self.last.first() else { return false };
        let mut draft = Draft { cut: first.index, shortened: self.results(&self.last), ..Draft::default() };
        if self.try_out(&draft) {
            return true;
        }
        let results = self.results(&self.current);
        draft.shortened.extend(&results);
        if !results.is_empty() && self.try_out(&draft) {
            return true;
        }
        if self.tried_without_seed(&mut draft) {
            return true;
        }
        if !self.is_too_large_alone(tokens_of(&self.last)) {
            return false;
        }
        if self.without_oldest_groups(&draft, &self.last) {
            return true;
        }
        let mut groups = self.groups(&self.last).concat();
        groups.sort_unstable();
        let attachments: Vec<u32> =
            self.last.iter().filter(|row| row.origin == origin::ATTACHMENT).map(|row| row.index).collect();
        let drafts: [(&[u32], &[u32]); 3] = [(&groups, &[]), (&[], &attachments), (&groups, &attachments)];
        drafts.into_iter().take(if attachments.is_empty() { 1 } else { 3 }).any(|(removed, digested)| {
            (draft.removed, draft.digested) = (removed.to_vec(), digested.to_vec());
            TEXT_LENGTHS.into_iter().any(|length| {
                let texts = self.last.iter().filter(|row| digested.binary_search(&row.index).is_err());
                draft.shortened = texts.map(|row| (row.index, length - length / 3, length / 3)).collect();
                // The model is at work on the current turn, so its results shrink only where they must.
                let fits = self.try_out(&draft);
                draft.shortened.extend(&results);
                fits || !results.is_empty() && self.try_out(&draft)
            })
        })
    }

    /// Removes every stored turn, then what is shown beside the new message, and what came with it only if nothing else
    /// is enough: a person has just sent it.
    fn keeping_current_turn(&self) -> bool {
        let mut draft = Draft { cut: self.transcript.stored_end(), ..Draft::default() };
        if self.try_out(&draft) {
            return true;
        }
        draft.removed = indexes(&self.shown);
        if self.shrinking(draft.clone(), &self.attached) {
            return true;
        }
        draft.removed = [indexes(&self.attached), draft.removed].concat();
        !self.attached.is_empty() && self.shrinking(draft, &[])
    }

    /// Shrinks the results of the current turn, shortens what came with the new message, removes the oldest tool
    /// groups, and at last shortens everything beside the new message, the seed last.
    fn shrinking(&self, mut draft: Draft, attached: &[Row]) -> bool {
        if self.try_out(&draft) {
            return true;
        }
        let results = self.results(&self.current);
        draft.shortened = results.clone();
        if self.try_out(&draft) {
            return true;
        }
        if self.tried_without_seed(&mut draft) {
            return true;
        }
        let fits = !attached.is_empty()
            && LENGTHS.into_iter().any(|length| {
                draft.shortened = [heads(attached, length), results.clone()].concat();
                self.try_out(&draft)
            });
        if fits {
            return true;
        }
        if self.is_too_large_alone(0) {
            if self.without_oldest_groups(&draft, &self.current) {
                return true;
            }
            draft.removed.extend(self.groups(&self.current).concat());
            draft.removed.sort_unstable();
        }
        let brought_in = self.current.get(1..).unwrap_or_default();
        LENGTHS.into_iter().any(|length| {
            draft.shortened = [heads(attached, 0), heads(brought_in, length)].concat();
            self.try_out(&draft)
        }) || LENGTHS.into_iter().any(|length| {
            draft.shortened = [heads(&self.seed, length), heads(attached, 0), heads(brought_in, 0)].concat();
            self.try_out(&draft)
        })
    }

    /// Removes tool groups from a turn, oldest first: as few as seem to be enough, then more.
    fn without_oldest_groups(&self, draft: &Draft, turn: &[Row]) -> bool {
        let groups = self.groups(turn);
        let first = turn.first().map_or(0, |row| row.index);
        let mut draft = draft.clone();
        let mut expected = self.cost(&draft, Shape::estimate);
        let (mut taken, mut more) = (0, 1);
        while taken < groups.len() {
            let end = (taken + more).min(groups.len());
            let gone = groups[taken..end].concat();
            let saved = gone.iter().map(|&index| draft.cost_of(&turn[(index - first) as usize], Shape::estimate));
            expected = expected.saturating_sub(saved.sum());
            draft.removed.extend(gone);
            taken = end;
            if expected <= self.limit {
                draft.removed.sort_unstable();
                if self.try_out(&draft) {
                    return true;
                }
                more *= 2;
            }
        }
        false
    }

    /// The tool groups of a turn, oldest first, each with its messages.
    fn groups(&self, turn: &[Row]) -> Vec<Vec<u32>> {
        let (Some(first), Some(last)) = (turn.first(), turn.last()) else { return vec![] };
        let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
        for (row, group) in turn.iter().zip(self.transcript.groups(first.index, last.index + 1)) {
            match groups.binary_search_by_key(&group, |(first, _)| *first) {
                Ok(at) => groups[at].1.push(row.index),
                Err(at) => groups.insert(at, (group, vec![row.index])),
            }
        }
        groups.into_iter().map(|(_, members)| members).filter(|members| members.len() > 1).collect()
    }

    /// The results of a turn, shortened as set by the operator.
    fn results(&self, turn: &[Row]) -> Vec<(u32, u32, u32)> {
        let results = turn.iter().filter(|row| row.is_result());
        results.map(|row| (row.index, self.shape.head, self.shape.tail)).collect()
    }

    /// Tries the draft without the seed, if the operator allows that.
    fn tried_without_seed(&self, draft: &mut Draft) -> bool {
        draft.without_seed = self.seed_may_go;
        draft.without_seed && self.try_out(draft)
    }

    /// Whether a turn with what always stays exceeds the hard limit: only then may parts of it be removed.
    fn is_too_large_alone(&self, turn: u64) -> bool {
        let seed = if self.seed_may_go { 0 } else { tokens_of(&self.seed) };
        seed + tokens_of(&self.current) + turn > self.limit
    }

    /// The estimated cost of a draft without the marker; `shortened` returns the cost of a shortened message.
    fn cost(&self, draft: &Draft, shortened: fn(Shape, &Row) -> u64) -> u64 {
        let seed = if draft.without_seed { &[] } else { &self.seed[..] };
        let with_last = self.last.first().is_some_and(|first| first.index == draft.cut);
        let last = if with_last { &self.last[..] } else { &[] };
        let stays = |row: &&Row| draft.removed.binary_search(&row.index).is_err();
        let rows = seed.iter().chain(last).chain(&self.attached).chain(&self.shown).chain(&self.current).filter(stays);
        rows.map(|row| draft.cost_of(row, shortened)).sum()
    }

    /// Tries a draft as the plan; returns whether it fits. If so, older turns stay as well as far as there is room.
    fn try_out(&self, draft: &Draft) -> bool {
        // Shortening makes the host read the whole text, so a draft that cannot fit anyway is not tried.
        if self.cost(draft, Shape::without_notice) > self.limit {
            return false;
        }
        self.carry_out(draft, draft.cut);
        let tokens = self.plan.tokens();
        if tokens > self.limit {
            return false;
        }
        let mut room = self.aim.saturating_sub(tokens);
        let older = self.transcript.segments().skip_while(|segment| segment.start >= draft.cut);
        let staying = older.map_while(|segment| {
            room = room.checked_sub(segment.tokens())?;
            Some(segment.start)
        });
        if let Some(earlier) = staying.last().filter(|_| !draft.without_seed) {
            self.carry_out(draft, earlier);
            // If no turn goes, the marker of an earlier prune stays, which may cost more than a new one.
            if self.plan.tokens() > self.limit {
                self.carry_out(draft, draft.cut);
            }
        }
        true
    }

    /// Makes the draft the plan, with the stored messages from `cut` on.
    fn carry_out(&self, draft: &Draft, cut: u32) {
        self.plan.clear();
        if draft.without_seed {
            self.plan.remove(0, self.transcript.seed_end());
        }
        self.plan.remove_before(self.transcript, cut);
        for run in draft.removed.chunk_by(|a, b| a + 1 == *b) {
            self.plan.remove(run[0], run[run.len() - 1] + 1);
        }
        for &(index, head, tail) in &draft.shortened {
            let removed = draft.removed.binary_search(&index).is_ok();
            let with_seed = draft.without_seed && index < self.transcript.seed_end();
            if !removed && !with_seed {
                self.plan.shorten(index, head, tail);
            }
        }
        draft.digested.iter().for_each(|&index| self.plan.digest(index));
    }
}

fn indexes(rows: &[Row]) -> Vec<u32> {
    rows.iter().map(|row| row.index).collect()
}

/// Messages that are shortened to so many characters of their start.
fn heads(rows: &[Row], length: u32) -> Vec<(u32, u32, u32)> {
    rows.iter().map(|row| (row.index, length, 0)).collect()
}
