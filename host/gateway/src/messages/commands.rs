//! The replies to commands.

use fluent_bundle::FluentValue;
use pmk_policy::Suspension;

use super::{Messages, code};
use crate::access::authorization::Reason;

impl Messages {
    /// Precedes a list of commands.
    pub fn commands(&self) -> String {
        self.text("commands", [])
    }

    /// What everybody can say or do without a command.
    pub fn help_more(&self) -> String {
        self.text("help-more", [])
    }

    /// Precedes the commands that may have been meant.
    pub fn usage(&self) -> String {
        self.text("usage", [])
    }

    /// There is no such command, or no such admin command.
    pub fn unknown_command(&self, is_admins: bool, word: &str) -> String {
        let id = if is_admins { "unknown-admin-command" } else { "unknown-command" };
        self.text(id, [("word", code(word).into())])
    }

    /// The description of a command.
    pub fn about_command(&self, words: &[&str]) -> String {
        self.text(&format!("about-{}", words.join("-")), [])
    }

    /// To somebody who has no permission.
    pub fn may_not(&self, reason: Reason) -> String {
        let id = match reason {
            Reason::Blocked => "blocked",
            Reason::NotADirectMessage => "only-in-dm",
            Reason::NotAnAdmin => "only-admins",
            Reason::ByApp => "only-people",
        };
        self.text(id, [])
    }

    /// The setup of the gateway.
    pub fn status(&self, workspace: &str, ingest: &str, audience: &str, admins: usize, pools: &str) -> String {
        let filled = [
            ("workspace", workspace.into()),
            ("ingest", ingest.into()),
            ("audience", audience.into()),
            ("admins", admins.into()),
            ("pools", pools.into()),
        ];
        self.text("status", filled)
    }

    /// How much of a conversation the model sees.
    pub fn window(&self, messages: usize, tokens: u64, limit: u64) -> String {
        let filled = [("messages", messages.into()), ("tokens", grouped(tokens)), ("limit", grouped(limit))];
        self.text("window", filled)
    }

    /// Turns that were dropped from the window.
    pub fn window_dropped(&self, turns: u32) -> String {
        self.text("window-dropped", [("turns", turns.into())])
    }

    /// Turns in the window that are not listed.
    pub fn window_older(&self, turns: usize, tokens: u64) -> String {
        self.text("window-older", [("turns", turns.into()), ("tokens", grouped(tokens))])
    }

    /// A group of messages in the window, by the origin and text of the first.
    pub fn window_group(&self, origin: &str, text: &str, messages: usize, tokens: u64) -> String {
        let filled = [
            ("origin", origin.into()),
            ("text", code(text).into()),
            ("messages", messages.into()),
            ("tokens", grouped(tokens)),
        ];
        self.text("window-group", filled)
    }

    /// Precedes the policies.
    pub fn policies(&self) -> String {
        self.text("policies", [])
    }

    /// One policy, and its decisions.
    pub fn policy_layer(&self, name: &str, digest: &str, decides: &str) -> String {
        self.text("policy-layer", [("name", name.into()), ("digest", digest.into()), ("decides", decides.into())])
    }

    /// A decision for which a policy is skipped at present, and why. The reason is for operators only: a policy may
    /// quote a conversation in it.
    pub fn suspension(&self, suspension: &Suspension) -> String {
        let reason = code(&self.error(&suspension.reason));
        self.text("suspension", [("skipped", self.skipped(suspension).into()), ("reason", reason.into())])
    }

    /// The same in the list of the policies, which everybody may read: without the reason.
    pub fn policy_suspension(&self, suspension: &Suspension) -> String {
        self.text("policy-suspension", [("skipped", self.skipped(suspension).into())])
    }

    fn skipped(&self, Suspension { policy, decision, left, .. }: &Suspension) -> String {
        let filled = [
            ("policy", code(&policy.to_string()).into()),
            ("decision", code(decision.name()).into()),
            ("left", (*left).into()),
        ];
        self.text("skipped", filled)
    }

    /// The policies are those of an arm.
    pub fn policy_of_arm(&self, experiment: &str, arm: &str) -> String {
        self.text("policy-of-arm", [("experiment", experiment.into()), ("arm", arm.into())])
    }

    /// Precedes the list of those with another audience.
    pub fn default_audience(&self, audience: &str) -> String {
        self.text("default-audience", [("audience", audience.into())])
    }

    /// Precedes the pools.
    pub fn contacts(&self) -> String {
        self.text("contacts", [])
    }

    /// The list of admins.
    pub fn admins(&self, list: &str) -> String {
        self.text("admins", [("list", list.into())])
    }

    /// Takes the place of an empty list, or of a value that is not set.
    pub fn nothing(&self) -> String {
        self.text("nothing", [])
    }

    pub fn no_atoms(&self) -> String {
        self.text("no-atoms", [])
    }

    /// The last line of a list of atoms.
    pub fn more_atoms(&self, more: usize) -> String {
        self.text("more-atoms", [("more", more.into())])
    }

    /// `pending`, `flagged` or `approved`.
    pub fn atom_status(&self, status: &'static str) -> String {
        self.text("atom-status", [("status", status.into())])
    }

    /// The heading of an atom.
    pub fn atom(&self, filled: &[(&'static str, String); 5]) -> String {
        self.text("atom", filled.clone().map(|(name, value)| (name, value.into())))
    }

    pub fn no_changes(&self) -> String {
        self.text("no-changes", [])
    }

    /// The result of a change, by the id of the sentence: `changed-…`, `failed-…`, `refused-…` or `argument-…`.
    pub fn changed(&self, sentence: &str, filled: &[(&'static str, &str)]) -> String {
        let filled = filled.iter().map(|(name, value)| (*name, FluentValue::from(code(value))));
        self.fill(sentence, filled.collect())
    }
}

/// A number with separators.
fn grouped(number: u64) -> FluentValue<'static> {
    indicatif::HumanCount(number).to_string().into()
}

#[cfg(test)]
pub(super) fn suspended(left: u32) -> Suspension {
    let (name, version) = ("strict".to_owned(), "1.0.0".to_owned());
    let policy = pmk_policy::Identity { name, version, sha256: String::new() };
    Suspension { policy, decision: pmk_policy::Decision::Prune, left, reason: "trapped: `unreachable`".to_owned() }
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    vec![
        messages.window(1, 5_000, 7_000),
        messages.window(2, 5, 7_000),
        messages.window_dropped(2),
        messages.window_older(2, 7),
        messages.window_group("user", "x", 2, 7),
        messages.window_group("tool-result", "x", 1, 7),
        messages.policies(),
        messages.help_more(),
        messages.policy_layer("standard", "12", "cap"),
        messages.policy_of_arm("x", "a"),
        messages.suspension(&suspended(1)),
        messages.policy_suspension(&suspended(17)),
    ]
}

#[cfg(test)]
mod tests {
    use pmk_core::Language;

    use super::*;

    #[test]
    fn the_words_of_seed_003() {
        let messages = Messages::new(Language::TraditionalChinese);
        assert!(messages.may_not(Reason::NotADirectMessage).starts_with(":no_entry_sign: "));
        assert!(messages.may_not(Reason::NotADirectMessage).contains("只能在私訊"));
        assert!(messages.may_not(Reason::NotAnAdmin).contains("限管理員"));
        assert!(messages.unknown_command(true, "frob").starts_with(":grey_question: 未知的 admin 子指令 `frob`"));
    }
}
