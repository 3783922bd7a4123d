//! Checks policies that are swapped while turns run, and the arms of an experiment.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Verdict, is_answer};
use crate::scenario::What;

impl Verdict<'_> {
    /// All decisions of one turn must be made by the policies it began with, and a conversation keeps its arm.
    pub(super) fn judge_policies(&self, lines: &[Value], breaches: &mut Vec<String>) {
        let setting = &self.world.scenario.setting;
        let swaps = self.world.scenario.events.iter().filter_map(|event| match event.what {
            What::Swap(to) => Some((event.at, to)),
            _ => None,
        });
        // From when until when, and by which policies.
        let mut served: Vec<(u64, u64, Vec<String>)> = vec![(0, u64::MAX, self.policies.digests(setting.policies))];
        for (at, to) in swaps {
            if let Some(last) = served.last_mut() {
                last.1 = at;
            }
            served.push((at, u64::MAX, self.policies.digests(to)));
        }
        let arm = setting.arm.map(|arm| self.policies.digests(arm));
        let all: Vec<&Vec<String>> = served.iter().map(|(_, _, layers)| layers).chain(&arm).collect();
        // Two stacks may have the same policy on top.
        let decides_under = |top: &str, by: &str| {
            let mut stacks = all.iter().filter(|layers| layers.first().is_some_and(|first| first == top));
            stacks.any(|layers| layers.iter().any(|layer| layer == by))
        };
        for line in lines {
            let Some(top) = line["policySha256"].as_str() else { continue };
            if let Some(by) = line["sha256"].as_str()
                && !decides_under(top, by)
            {
                breaches.push(format!("{} tells of a policy that did not serve in its turn", line["type"]));
            }
        }
        for post in self.posts.iter().filter(|post| post.is_there() && is_answer(post)) {
            let processed = |line: &&Value| line["type"] == "turn.processed" && line["replyTs"] == *post.ts;
            let Some(line) = lines.iter().find(processed) else { continue };
            let Some(top) = line["policySha256"].as_str() else { continue };
            let reports = self.reports.iter().filter(|report| report.event_id == post.shows.event_id);
            let mut deciders = reports.filter_map(|report| report.question()?.policy.as_ref()?.sha256.as_deref());
            if let Some(by) = deciders.next_back()
                && !decides_under(top, by)
            {
                breaches.push(format!("{} was begun with one policy and decided by another", post.shows.event_id));
            }
            if line["arm"] == "other" {
                let is_arms = arm.as_ref().and_then(|arm| arm.first()).is_some_and(|first| first == top);
                if !is_arms {
                    breaches.push(format!("{} was decided by another policy than its arm's", post.shows.event_id));
                }
                continue;
            }
            let mut asked = self.questions.iter().filter(|question| post.shows.is_about(question));
            // A missed message is read back, and may be answered before Slack delivers it.
            let sent_at = asked.next().and_then(|question| question.first_sent_at).unwrap_or(0);
            let since = sent_at.min(post.posted_at);
            let serves = |(from, until, layers): &(u64, u64, Vec<String>)| {
                layers.first().is_some_and(|first| first == top) && *from <= post.at && since <= *until
            };
            if !served.iter().any(serves) {
                breaches.push(format!("{} was decided by a policy that did not serve then", post.shows.event_id));
            }
        }
        self.judge_arms(lines, breaches);
    }

    fn judge_arms(&self, lines: &[Value], breaches: &mut Vec<String>) {
        let is_stop = |line: &Value| line["type"] == "experiment.arm-stopped";
        // The lines of several hosts are in no order from which one could tell what came before.
        if self.world.hosts() > 1 && lines.iter().any(is_stop) {
            return;
        }
        let mut arms: BTreeMap<&str, &str> = BTreeMap::new();
        for line in lines {
            if is_stop(line) {
                arms.clear();
            }
            let (Some(session), Some(arm)) = (line["session"].as_str(), line["arm"].as_str()) else { continue };
            if *arms.entry(session).or_insert(arm) != arm {
                breaches.push(format!("{session} has changed its arm"));
            }
        }
    }
}
