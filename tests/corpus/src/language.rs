//! What conversations of one language are made of.

/// A kind of fact. In its sentences `{p}` is a person, `{v}` the value, `{w}` another value that is told a little later.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// How the fact is said.
    pub says: &'static str,
    /// How it is taken back later.
    pub corrects: &'static str,
    /// The question in the words of the fact, and in others.
    pub asks: &'static str,
    pub asks_otherwise: &'static str,
    /// What is said a little later without naming anybody, and how that is asked for after the first question.
    pub adds: &'static str,
    pub goes_on: &'static str,
    /// The question about several people.
    pub asks_of_several: &'static str,
    pub values: &'static [&'static str],
    pub more: &'static [&'static str],
}

/// A language.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// Its tag.
    pub name: &'static str,
    pub people: &'static [&'static str],
    /// What stands between the names of several people.
    pub and: &'static str,
    pub families: &'static [Family],
    /// Small talk, of people (`{p}`) and things (`{t}`), and its answers.
    pub talk: &'static [&'static str],
    pub things: &'static [&'static str],
    pub answers: &'static [&'static str],
    /// What is said to a fact.
    pub noted: &'static [&'static str],
    /// What is answered to a question that another goes on from.
    pub recalls: &'static str,
}
