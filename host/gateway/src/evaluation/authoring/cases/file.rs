//! A case as it is in its file, and the question it asks.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, fchown},
    path::Path,
};

use pmk_core::Origin;
use pmk_policy::{IncomingInput, OverflowInput, Phase, PruneInput, Rung};
use pmk_system::{
    error::{Failure, OrHint},
    files, home,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::{Answer, Lines};
use crate::evaluation::authoring::{
    recorded::{self, Recorded},
    stage::Stage,
};

/// The hard limit of a case without a budget: that of a window of 200,000 tokens.
const DEFAULT_BUDGET: u64 = 180_000;

/// A question, and the expected answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// A description for human readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<String>,
    /// The decision that is asked for.
    #[serde(default, skip_serializing_if = "Asks::is_prune")]
    decision: Asks,
    /// The conversation: a file relative to the case, or the messages themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    history: Option<Value>,
    /// The content that is capped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incoming: Option<Incoming>,
    /// The overflow to recover from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overflow: Option<Overflow>,
    /// The hard limit in tokens; for a summary, its largest size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget: Option<u64>,
    /// The model's whole window in tokens; four thirds of the budget if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<u64>,
    /// The call that the decision is for. Without it, a prune is for the call that the history ends with, and an overflow
    /// is one of the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<Phase>,
    /// Whether the seed may be removed.
    #[serde(default, rename = "seedMayGo", skip_serializing_if = "std::ops::Not::not")]
    seed_may_go: bool,
    /// Settings that differ from their defaults.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    settings: Map<String, Value>,
    /// The expected answer, line by line.
    #[serde(default, skip_serializing_if = "Lines::is_empty")]
    pub expect: Lines,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Asks {
    #[default]
    Prune,
    Cap,
    Summarize,
    Recover,
}

impl Asks {
    fn is_prune(&self) -> bool {
        *self == Asks::Prune
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Incoming {
    kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    text: String,
    /// How many times the text is repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repeat: Option<u32>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Overflow {
    #[serde(default)]
    tried: Vec<String>,
    available: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observed_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allowed_tokens: Option<u64>,
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// The file cannot be read, or is not a case.
    pub fn read(path: &Path) -> Result<Case, Failure> {
        let shown = path.display();
        let text = files::read_text(path)
            .map_err(|error| format!("cannot read the case `{shown}`: {error}"))
            .or_hint("check that it is a file that you can read")?;
        serde_json::from_str(&text).map_err(|error| format!("the case `{shown}` is invalid: {error}")).or_hint(
            "a case has `history`, `budget`, `window`, `phase`, `seedMayGo`, `settings` and `expect`; for decisions other than prune also `decision`, `incoming` and `overflow`",
        )
    }

    /// Writes the case back.
    ///
    /// # Errors
    /// The file cannot be written; the old one is then still there.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let unwritable = |error: &dyn std::fmt::Display| {
            Failure::new(format!("cannot write the case `{}`: {error}", path.display()))
                .hint("check that it is yours, and that you can write to it and to its folder")
        };
        let text = serde_json::to_string_pretty(self).map_err(|error| unwritable(&error))?;
        replace(path, &(text + "\n")).map_err(|error| unwritable(&error))
    }

    /// Asks the policy.
    ///
    /// # Errors
    /// The case is invalid for this policy.
    pub fn ask(&self, stage: &Stage, path: &Path) -> Result<Answer, Failure> {
        let nonsense = |what: &str| Failure::new(format!("the case `{}`: {what}", path.display()));
        let exports = stage.policy().exports();
        let makes = match self.decision {
            Asks::Prune => exports.prune,
            Asks::Cap => exports.cap,
            Asks::Summarize => exports.summarize,
            Asks::Recover => exports.recover,
        };
        if !makes {
            return Err(
                nonsense("the policy does not make that decision").hint("list its exports with `policy inspect`")
            );
        }
        let [prunes, caps, summarizes, recovers] =
            [Asks::Prune, Asks::Cap, Asks::Summarize, Asks::Recover].map(|asks| self.decision == asks);
        for (is_out_of_place, what) in [
            (self.history.is_some() && !prunes && !summarizes, "`history` is only for `prune` and `summarize`"),
            (self.incoming.is_some() && !caps, "`incoming` is only for `cap`"),
            (self.overflow.is_some() && !recovers, "`overflow` is only for `recover`"),
            (self.window.is_some() && !prunes, "`window` is only for `prune`"),
            (self.phase.is_some() && !prunes && !recovers, "`phase` is only for `prune` and `recover`"),
            (self.seed_may_go && !prunes, "`seedMayGo` is only for `prune`"),
        ] {
            if is_out_of_place {
                return Err(nonsense(what).hint("remove it, or ask for another `decision`"));
            }
        }
        let stack = stage.with_values(self.settings.clone()).map_err(|error| {
            let failure = nonsense(&error.to_string());
            match error.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        })?;
        let limit = self.budget.unwrap_or(DEFAULT_BUDGET);
        Ok(match self.decision {
            Asks::Prune => {
                let recorded = self.recorded(path)?;
                let window = self.window.unwrap_or(limit.saturating_mul(4) / 3);
                if window < limit {
                    let what = format!("a budget of {limit} tokens does not fit into a window of {window}");
                    return Err(nonsense(&what).hint("use a larger `window`, or a smaller `budget`"));
                }
                let phase = self.phase.unwrap_or_else(|| recorded::phase(&recorded.transcript));
                let input = PruneInput { limit, window, phase, seed_may_go: self.seed_may_go };
                Answer::of_prune(&stack.prune(&recorded.transcript, input), &recorded, limit)
            }
            Asks::Summarize => {
                let max_tokens = u32::try_from(limit).unwrap_or(u32::MAX);
                Answer::of_summary(&stack.summarize(&self.recorded(path)?.transcript, max_tokens))
            }
            Asks::Cap => {
                let incoming = self.incoming.as_ref().ok_or_else(|| {
                    nonsense("it has no `incoming`")
                        .hint("add it, for example `{\"kind\": \"tool-result\", \"text\": \"…\"}`")
                })?;
                Answer::of_cap(
                    &stack.cap(incoming.input(limit).map_err(|failure| nonsense(failure).hint(Incoming::HINT))?),
                )
            }
            Asks::Recover => {
                let overflow = self.overflow.as_ref().ok_or_else(|| {
                    nonsense("it has no `overflow`")
                        .hint("add it, for example `{\"available\": [\"trim\", \"compact\"]}`")
                })?;
                let input = overflow
                    .input(self.phase)
                    .map_err(|name| nonsense(&format!("unknown rung `{name}`")).hint(Overflow::HINT))?;
                Answer::of_recovery(&stack.recover(input))
            }
        })
    }

    fn recorded(&self, path: &Path) -> Result<Recorded, Failure> {
        match &self.history {
            Some(Value::String(file)) => Recorded::read(&path.parent().unwrap_or(Path::new("")).join(file)),
            Some(inline) => Recorded::parse(&inline.to_string(), &format!("the case `{}`", path.display())),
            None => Err(Failure::new(format!("the case `{}` has no `history`", path.display()))
                .hint("specify a file relative to the case, or the messages themselves")),
        }
    }
}

/// Replaces a file that somebody has written, atomically: a link stays, and so does who may read and write it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let place = fs::canonicalize(path)?;
    // Renaming would replace one that is protected against writing, too.
    let old = OpenOptions::new().write(true).open(&place)?.metadata()?;
    let staged = home::stage_private_file(&place, text.as_bytes())?;
    let new = staged.as_file().metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(staged.as_file(), Some(old.uid()), Some(old.gid()))?;
    }
    staged.as_file().set_permissions(old.permissions())?;
    staged.persist(&place)?;
    home::sync_folder_of(&place)
}

impl Incoming {
    const HINT: &'static str = "`kind` is seed, mra-result, tool-result or attachment";

    fn input(&self, limit: u64) -> Result<IncomingInput, &'static str> {
        let capped = [Origin::Seed, Origin::MraResult, Origin::ToolResult, Origin::Attachment];
        let kind = Origin::from_name(&self.kind).filter(|kind| capped.contains(kind));
        let kind = kind.ok_or("its `incoming` is not of a kind that is capped")?;
        let text = self.text.repeat(self.repeat.unwrap_or(1) as usize);
        Ok(IncomingInput { kind, name: self.name.clone(), text: text.into(), limit })
    }
}

impl Overflow {
    const HINT: &'static str = "the rungs are `trim`, `compact`, `rotate` and `give-up`";

    /// The error is the unknown name of a rung.
    fn input(&self, phase: Option<Phase>) -> Result<OverflowInput, String> {
        let rung = |name: &String| Rung::ALL.into_iter().find(|rung| rung.name() == name).ok_or_else(|| name.clone());
        let rungs = |names: &[String]| names.iter().map(rung).collect::<Result<Vec<_>, _>>();
        Ok(OverflowInput {
            phase: phase.unwrap_or_default(),
            tried: rungs(&self.tried)?,
            available: rungs(&self.available)?,
            observed_tokens: self.observed_tokens,
            allowed_tokens: self.allowed_tokens,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Regression: a full disk, or a kill amid the writing, left nothing of a case that its author had written.
    #[test]
    fn a_case_was_written_in_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let [case, link, before] = ["case.json", "link.json", "before"].map(|name| folder.path().join(name));
        let text = r#"{"history": [{"role": "user", "content": "q"}]}"#;
        fs::write(&case, text).expect("a file");
        fs::set_permissions(&case, fs::Permissions::from_mode(0o640)).expect("permissions");
        fs::hard_link(&case, &before).expect("another name");
        symlink("case.json", &link).expect("a link");
        Case::read(&link).expect("a case").write(&link).expect("room");
        assert_eq!(fs::read_to_string(&before).expect("a file"), text, "it is complete until the other one is");
        assert_ne!(fs::read_to_string(&case).expect("a file"), text);
        assert_eq!(fs::metadata(&case).expect("a file").permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
    }
}
