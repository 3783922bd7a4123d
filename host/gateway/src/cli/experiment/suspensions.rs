//! What `experiment status` says of policies of arms that kept failing: those that are skipped at present, and how
//! often any was.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pmk_core::Language;
use pmk_system::home;
use serde::Serialize;

use super::super::{
    context::Context,
    page::Page,
    text::{one_line, printable},
};
use crate::{
    diagnostics::audit::{self, Record},
    messages::Messages,
    presence::health::SuspendedArm,
    stderr::Spinner,
};

/// The suspensions in an experiment.
pub(super) struct Suspensions {
    /// The decisions for which policies are skipped at present.
    pub(super) suspended: Vec<SuspendedArm>,
    /// Those in the ledger, by arm.
    pub(super) suspensions: BTreeMap<String, Suspended>,
}

/// How often policies of an arm were suspended.
#[derive(Default, Serialize)]
pub(super) struct Suspended {
    count: u64,
    last_at: String,
    last_reason: String,
}

impl Suspensions {
    /// Reads the ledger since this time. Without a readable one, only the present is known.
    pub(super) fn read(
        context: &Context,
        experiment: &str,
        since: Option<Timestamp>,
        suspended: Vec<SuspendedArm>,
    ) -> Suspensions {
        let waiting = Spinner::when_long("reading the ledger");
        let read = since.map(|since| audit::read::events(&home::gateway_dir(&context.home), since));
        drop(waiting);
        let records = read.transpose().unwrap_or_else(|error| {
            context.warn(&format!("cannot read the ledger: {error}"));
            None
        });
        let records = records.map(|(records, _)| records).unwrap_or_default();
        let suspended = suspended.into_iter().filter(|arm| arm.experiment == experiment).collect();
        Suspensions { suspended, suspensions: count(&records, experiment) }
    }

    /// Returns the lines about them, after a blank one; nothing if there are none.
    pub(super) fn page(&self, language: Language) -> String {
        let messages = Messages::new(language);
        let mut page = Page::new(language);
        if !self.suspended.is_empty() || !self.suspensions.is_empty() {
            page.text("\n");
        }
        for SuspendedArm { arm, suspension, .. } in &self.suspended {
            let (arm, colon) = (printable(arm), language.pick(": ", "："));
            page.text(&format!("{arm}{colon}{}\n", messages.suspension(suspension)));
        }
        for (arm, Suspended { count, last_at, last_reason }) in &self.suspensions {
            let (count, reason) = (count.to_string(), one_line(&messages.error(last_reason), 300));
            let template = "suspensions of {} so far: {}; the last one at {}: {}";
            let told = page.filled(template, &[&printable(arm), &count, last_at, &reason]);
            page.text(&format!("{told}\n"));
        }
        page.done()
    }
}

fn count(records: &[Record], experiment: &str) -> BTreeMap<String, Suspended> {
    let mut arms: BTreeMap<String, Suspended> = BTreeMap::new();
    for Record { at, event } in records {
        if event["type"] != "policy.suspended" || event["experiment"] != experiment {
            continue;
        }
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let arm = arms.entry(text("arm")).or_default();
        *arm = Suspended { count: arm.count + 1, last_at: format!("{at:.0}"), last_reason: text("reason") };
    }
    arms
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn suspensions_of_other_experiments_and_of_the_serving_policies_are_not_counted() {
        let record = |second: i64, experiment: &str, reason: &str| {
            let place = json!({"type": "policy.suspended", "experiment": experiment, "arm": "bad", "reason": reason});
            Record { at: Timestamp::from_second(second).expect("a time"), event: place }
        };
        let serving = json!({"type": "policy.suspended", "reason": "trapped"});
        let serving = Record { at: Timestamp::UNIX_EPOCH, event: serving };
        let records = [record(1, "less", "trapped"), record(2, "more", "trapped"), record(3, "less", "slow"), serving];
        let counted = Suspensions { suspended: vec![], suspensions: count(&records, "less") };
        let said = "\nsuspensions of bad so far: 2; the last one at 1970-01-01T00:00:03Z: slow\n";
        assert_eq!(counted.page(Language::English), said);
        let none = Suspensions { suspended: vec![], suspensions: count(&records, "other") };
        assert_eq!(none.page(Language::English), "");
    }
}
