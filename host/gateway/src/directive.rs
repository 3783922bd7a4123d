//! Directives: what the model asks the gateway to do. These are `mra-ask` (search a repository) and `escalate` (ask a
//! person); and, if a case is open, its notes on the case ([`case_updates`]).
//!
//! A model with tool use calls them as tools ([`tools`]); any other model writes a fenced block into its answer
//! ([`parse`]). Only the model's own answer is ever parsed. And since a model can be talked into repeating text from
//! its request, a directive that also occurs there is not carried out: [`Given::holds`]. If the server does not accept
//! tools, earlier calls are shown to the model in the form in which it would write them now: [`as_text`].

mod case;
mod echo;
mod fence;
mod history;
mod outline;
pub mod tools;

pub use case::{CASE_TAG, CaseUpdate, case_updates, without};
pub use echo::{Given, asked_share};
pub use fence::{DirectiveError, Parsed, parse, write};
pub use history::as_text;
pub use outline::own_words;

/// A directive. The values are the model's text, trimmed and not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Ask `mra` about a repository.
    MraAsk { repo: String, question: String },
    /// Ask the contacts of a repository, or the default contacts.
    Escalate {
        repo: Option<String>,
        question: String,
        /// Why neither the knowledge base nor `mra` has the answer.
        reason: Option<String>,
    },
}

/// The kinds of directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    MraAsk,
    Escalate,
}

impl Kind {
    const ALL: [Kind; 2] = [Kind::MraAsk, Kind::Escalate];

    /// Returns the tag after the fence.
    pub const fn tag(self) -> &'static str {
        match self {
            Kind::MraAsk => "mra-ask",
            Kind::Escalate => "escalate",
        }
    }
}

/// The directives that can be carried out now for the asker. The model is not told of any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvailableDirectives {
    /// There is code to query.
    pub mra: bool,
    /// There are contacts to ask.
    pub people: bool,
}

impl AvailableDirectives {
    /// Returns whether any directive is available.
    pub const fn is_any(self) -> bool {
        self.mra || self.people
    }

    /// All directives.
    pub const ALL: AvailableDirectives = AvailableDirectives { mra: true, people: true };
    /// All combinations, by [number](AvailableDirectives::number).
    pub const EACH: [AvailableDirectives; 4] = [
        AvailableDirectives { mra: false, people: false },
        AvailableDirectives { mra: true, people: false },
        AvailableDirectives { mra: false, people: true },
        AvailableDirectives::ALL,
    ];

    /// Returns its index in [`EACH`](AvailableDirectives::EACH).
    pub fn number(self) -> usize {
        usize::from(self.mra) + 2 * usize::from(self.people)
    }

    /// Returns the kinds that are offered, always in this order.
    pub fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.has(*kind))
    }

    const fn has(self, kind: Kind) -> bool {
        match kind {
            Kind::MraAsk => self.mra,
            Kind::Escalate => self.people,
        }
    }
}

impl Directive {
    pub const fn kind(&self) -> Kind {
        match self {
            Directive::MraAsk { .. } => Kind::MraAsk,
            Directive::Escalate { .. } => Kind::Escalate,
        }
    }

    pub fn question(&self) -> &str {
        match self {
            Directive::MraAsk { question, .. } | Directive::Escalate { question, .. } => question,
        }
    }

    /// Builds a directive from named values, from a fence or a tool call. Empty values count as
    /// missing.
    fn from_fields(kind: Kind, mut field: impl FnMut(&str) -> Option<String>) -> Result<Self, &'static str> {
        let mut get = |key| field(key).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        match kind {
            Kind::MraAsk => {
                Ok(Directive::MraAsk { repo: get("repo").ok_or("repo")?, question: get("question").ok_or("question")? })
            }
            Kind::Escalate => Ok(Directive::Escalate {
                repo: get("repo"),
                question: get("question").ok_or("question")?,
                reason: get("reason"),
            }),
        }
    }
}
