//! Notices to the admins.

use pmk_core::text::collapse_whitespace;
use pmk_models::ModelError;

use super::{Messages, code};
use crate::guard_rail::{Finding, GuardrailMetric};

impl Messages {
    /// To the admins: a conversation continues in a fresh session.
    pub fn rotated_for_admins(&self, session: &str, entries: usize) -> String {
        self.text("rotated-for-admins", [("session", session.into()), ("entries", entries.into())])
    }

    /// To the admins: a message could not be answered.
    pub fn recovery_failed(&self, session: &str) -> String {
        self.text("recovery-failed", [("session", session.into())])
    }

    /// To the admins: a message was parked.
    pub fn parked_for_admins(&self, session: &str, why: &str) -> String {
        self.text("parked-for-admins", [("session", session.into()), ("why", code(&self.error(why)).into())])
    }

    /// To the admins: a message was answered, but something besides the answer cannot be delivered and was parked.
    pub fn rest_parked_for_admins(&self, session: &str, why: &str) -> String {
        self.text("rest-parked-for-admins", [("session", session.into()), ("why", code(&self.error(why)).into())])
    }

    /// To the admins: a policy was suspended.
    pub fn policy_suspended(&self, policy: &str, failures: u32, reason: &str) -> String {
        let reason = code(&self.error(reason));
        self.text(
            "policy-suspended",
            [("policy", policy.into()), ("failures", failures.into()), ("reason", reason.into())],
        )
    }

    /// To the admins: other policies could not be swapped in, and the previous ones still decide.
    pub fn policy_refused(&self, reason: &str) -> String {
        self.text("policy-refused", [("reason", code(&self.error(reason)).into())])
    }

    /// To the admins: the front refuses new connections, and what to do.
    pub fn front_refused(&self, what: &str, hint: &str) -> String {
        let (what, hint) = (self.error(what), self.error(hint));
        self.text("front-refused", [("what", code(&what).into()), ("hint", collapse_whitespace(&hint).into())])
    }

    /// To the admins: after an outage, so many conversations are not read back, because at most so many are.
    pub fn left_unread(&self, count: usize, most: usize) -> String {
        self.text("left-unread", [("count", count.into()), ("most", most.into())])
    }

    /// To the admins: after an outage, so many conversations were read back in part only.
    pub fn partly_read(&self, count: usize) -> String {
        self.text("partly-read", [("count", count.into())])
    }

    /// To the admins: the front accepts connections again; or, if it had `muted` the gateway, what that says.
    pub fn front_accepted(&self, muted: bool) -> String {
        self.text(if muted { "front-unmuted" } else { "front-accepted" }, [])
    }

    /// To the admins: the model of that name refuses everybody.
    pub fn model_refuses(&self, error: &ModelError, model: &str) -> String {
        let what = code(&self.error(&error.to_string()));
        self.text("model-refuses", [("model", code(model).into()), ("what", what.into())])
    }

    /// To the admins: the model of that name answers again.
    pub fn model_answers_again(&self, model: &str) -> String {
        self.text("model-answers-again", [("model", code(model).into())])
    }

    /// To the admins: the guard rail stopped an arm.
    pub fn arm_stopped(&self, experiment: &str, arm: &str, control: &str, verdict: &Finding) -> String {
        let Finding { worse, arm: share, control: of_control, .. } = verdict;
        let filled = [
            ("experiment", experiment.into()),
            ("arm", arm.into()),
            ("control", control.into()),
            ("bad", share.bad.into()),
            ("of", share.of.into()),
            ("control-bad", of_control.bad.into()),
            ("control-of", of_control.of.into()),
        ];
        match worse {
            GuardrailMetric::Failures => self.text("arm-stopped-for-failures", filled),
            GuardrailMetric::Overflows => self.text("arm-stopped-for-overflows", filled),
        }
    }

    /// To the admins: an experiment was not started, or goes on without a change.
    pub fn experiment_refused(&self, experiment: &str, why: &str, goes_on: bool) -> String {
        let key = if goes_on { "experiment-change-refused" } else { "experiment-refused" };
        self.text(key, [("experiment", experiment.into()), ("why", self.error(why).into())])
    }

    /// To the admins: a model is asked without tools from now on.
    pub fn no_tools(&self, model: &str) -> String {
        self.text("no-tools", [("model", code(model).into())])
    }
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    use crate::guard_rail::Share;

    let verdict = |worse| {
        let share = Share { bad: 7, of: 9 };
        Finding { worse, arm: share, control: Share { bad: 0, of: 11 }, evidence: 44.0, bound: 40.0 }
    };
    vec![
        messages.rotated_for_admins("slack:dm:U1", 15_276),
        messages.recovery_failed("slack:dm:U1"),
        messages.no_tools("llama3"),
        messages.policy_suspended("strict 1.0.0", 5, "trapped: `unreachable`"),
        messages.policy_refused("policy `a.wasm` is empty"),
        messages.front_refused("Slack says `invalid_auth`", "`pmk-host doctor`"),
        messages.left_unread(7, 1_000),
        messages.partly_read(2),
        messages.front_accepted(false),
        messages.front_accepted(true),
        messages.arm_stopped("less", "b", "a", &verdict(GuardrailMetric::Failures)),
        messages.arm_stopped("less", "b", "a", &verdict(GuardrailMetric::Overflows)),
        messages.experiment_refused("less", "arm `b`: no such file", false),
        messages.experiment_refused("less", "arm `b`: no such file", true),
    ]
}
