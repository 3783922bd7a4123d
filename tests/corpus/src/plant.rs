//! Conversations with facts in them, and questions about the facts.

use std::{collections::BTreeSet, fs, io, path::Path};

use pmk_core::{Message, testing::Rng};
use serde::Serialize;

use crate::{
    chinese::CHINESE,
    english::ENGLISH,
    language::{Family, Language},
};

/// Turns of a conversation before anybody asks.
const TURNS: usize = 900;

/// Facts in each, and how much small talk there is between a fact and what is added to it.
const FACTS: usize = 80;
const SOON: usize = 2;

/// What makes a question hard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// It repeats the words of the fact.
    Direct,
    /// It puts them in other words.
    Paraphrase,
    /// It goes on from the question before.
    FollowUp,
    /// It takes several facts to answer.
    Several,
    /// The fact was corrected later, and only the correction is right.
    Corrected,
}

/// A message of a conversation.
#[derive(Clone, Debug)]
pub struct Said {
    pub id: i64,
    pub message: Message,
}

/// A question, and the messages without which it cannot be answered.
#[derive(Clone, Debug, Serialize)]
pub struct Question {
    pub id: String,
    pub conversation: String,
    pub question: String,
    pub answer: String,
    pub evidence: Vec<i64>,
    pub category: Category,
    /// It is asked after this message; without one, at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
}

/// A conversation.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub id: String,
    pub messages: Vec<Said>,
}

/// Conversations, and questions about them.
#[derive(Clone, Debug)]
pub struct Corpus {
    pub conversations: Vec<Conversation>,
    pub questions: Vec<Question>,
}

impl Corpus {
    /// So many conversations of each language.
    pub fn of_seed(seed: u64, conversations: u64) -> Corpus {
        let mut corpus = Corpus { conversations: vec![], questions: vec![] };
        for at in 0..conversations {
            for language in [ENGLISH, CHINESE] {
                let id = format!("{}-{}", language.name, at + 1);
                let rng = Rng::new(seed ^ at.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ language.name.len() as u64);
                Writer { language, rng, id, messages: vec![], questions: vec![] }.write(&mut corpus);
            }
        }
        corpus
    }

    /// Writes `histories/ID.jsonl` for each conversation, and `questions.jsonl`. Returns the number of questions.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<usize> {
        let histories = folder.join("histories");
        fs::create_dir_all(&histories)?;
        for conversation in &self.conversations {
            fs::write(histories.join(format!("{}.jsonl", conversation.id)), conversation.lines())?;
        }
        fs::write(folder.join("questions.jsonl"), self.question_lines())?;
        Ok(self.questions.len())
    }

    /// The questions as JSON lines.
    pub fn question_lines(&self) -> String {
        self.questions.iter().map(|question| serde_json::json!(question).to_string() + "\n").collect()
    }
}

impl Conversation {
    /// Its messages as JSON lines: `{"id","role","content"}`.
    pub fn lines(&self) -> String {
        let line = |said: &Said| {
            let Said { id, message } = said;
            serde_json::json!({"id": id, "role": message.role, "content": message.plain_text()}).to_string() + "\n"
        };
        self.messages.iter().map(line).collect()
    }
}

/// A fact that was said.
struct Fact {
    family: Family,
    person: &'static str,
    value: &'static str,
    added: &'static str,
    said: i64,
    added_at: Option<i64>,
    corrected: Option<(i64, &'static str)>,
}

struct Writer {
    language: Language,
    rng: Rng,
    id: String,
    messages: Vec<Said>,
    questions: Vec<Question>,
}

impl Writer {
    fn write(mut self, corpus: &mut Corpus) {
        let facts = self.tell();
        self.ask(&facts);
        corpus.conversations.push(Conversation { id: self.id, messages: self.messages });
        corpus.questions.append(&mut self.questions);
    }

    /// The conversation: facts in the order of random turns, every third of them corrected in its second half.
    fn tell(&mut self) -> Vec<Fact> {
        let mut pairs = BTreeSet::new();
        let mut facts: Vec<Fact> = Vec::new();
        let at: BTreeSet<usize> = (0..FACTS).map(|_| self.rng.below(TURNS * 4 / 5)).collect();
        let mut additions: Vec<(usize, usize)> = vec![];
        let mut corrections: Vec<(usize, usize)> = vec![];
        for turn in 0..TURNS {
            if let Some(place) = additions.iter().position(|(due, _)| *due <= turn) {
                let (_, fact) = additions.remove(place);
                let line = filled(facts[fact].family.adds, "", "", facts[fact].added);
                facts[fact].added_at = Some(self.fact(&line));
            } else if let Some(place) = corrections.iter().position(|(due, _)| *due <= turn) {
                let (_, fact) = corrections.remove(place);
                let family = facts[fact].family;
                let value = self.other(family.values, facts[fact].value);
                let said = self.fact(&filled(family.corrects, facts[fact].person, value, ""));
                facts[fact].corrected = Some((said, value));
            } else if at.contains(&turn) {
                let (person, family) =
                    (self.rng.below(self.language.people.len()), self.rng.below(self.language.families.len()));
                if !pairs.insert((person, family)) {
                    self.talk();
                    continue;
                }
                let (person, family) = (self.language.people[person], self.language.families[family]);
                let (value, added) = (self.rng.pick(family.values), self.rng.pick(family.more));
                let said = self.fact(&filled(family.says, person, value, ""));
                match facts.len() % 3 {
                    0 => corrections.push((turn + 20 + self.rng.below(TURNS / 2), facts.len())),
                    1 => additions.push((turn + 1 + self.rng.below(SOON), facts.len())),
                    _ => {}
                }
                facts.push(Fact { family, person, value, added, said, added_at: None, corrected: None });
            } else {
                self.talk();
            }
        }
        facts
    }

    fn ask(&mut self, facts: &[Fact]) {
        for fact in facts {
            let Fact { family, person, value, .. } = *fact;
            if let Some((corrected, value)) = fact.corrected {
                self.question(Category::Corrected, filled(family.asks, person, "", ""), value, vec![corrected], None);
            } else if let Some(added) = fact.added_at {
                // The question that it goes on from is asked and answered at the end of the conversation.
                let lead = filled(family.asks, person, "", "");
                let answer = filled(self.language.recalls, "", value, "");
                let after = self.turn(&lead, &answer) + 1;
                self.question(Category::FollowUp, family.goes_on.to_owned(), fact.added, vec![added], Some(after));
            } else {
                let (direct, otherwise) =
                    (filled(family.asks, person, "", ""), filled(family.asks_otherwise, person, "", ""));
                self.question(Category::Direct, direct, value, vec![fact.said], None);
                self.question(Category::Paraphrase, otherwise, value, vec![fact.said], None);
            }
        }
        for (at, family) in self.language.families.iter().enumerate() {
            let of_family: Vec<&Fact> =
                facts.iter().filter(|fact| fact.family.says == family.says && fact.corrected.is_none()).collect();
            let asked = &of_family[..of_family.len().min(2 + at % 2)];
            if asked.len() < 2 {
                continue;
            }
            let people: Vec<&str> = asked.iter().map(|fact| fact.person).collect();
            let values: Vec<&str> = asked.iter().map(|fact| fact.value).collect();
            let question = filled(family.asks_of_several, &people.join(self.language.and), "", "");
            let evidence = asked.iter().map(|fact| fact.said).collect();
            self.question(Category::Several, question, &values.join(", "), evidence, None);
        }
    }

    fn question(&mut self, category: Category, question: String, answer: &str, evidence: Vec<i64>, after: Option<i64>) {
        let id = format!("{}-q{}", self.id, self.questions.len() + 1);
        let (conversation, answer) = (self.id.clone(), answer.to_owned());
        self.questions.push(Question { id, conversation, question, answer, evidence, category, after });
    }

    fn fact(&mut self, line: &str) -> i64 {
        let answer = self.rng.pick(self.language.noted);
        self.turn(line, answer)
    }

    fn talk(&mut self) {
        let Language { talk, people, things, answers, .. } = self.language;
        let line = self.rng.pick(talk).replace("{p}", self.rng.pick(people)).replace("{t}", self.rng.pick(things));
        let answer = self.rng.pick(answers);
        self.turn(&line, answer);
    }

    /// A turn; the id of what the person says.
    fn turn(&mut self, line: &str, answer: &str) -> i64 {
        let id = self.messages.len() as i64 + 1;
        self.messages.push(Said { id, message: Message::user(line) });
        self.messages.push(Said { id: id + 1, message: Message::assistant(answer) });
        id
    }

    fn other(&mut self, values: &[&'static str], than: &str) -> &'static str {
        loop {
            let value = self.rng.pick(values);
            if value != than {
                return value;
            }
        }
    }
}

fn filled(pattern: &str, person: &str, value: &str, added: &str) -> String {
    pattern.replace("{p}", person).replace("{v}", value).replace("{w}", added)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_evidence_holds_the_answer() {
        let corpus = Corpus::of_seed(1, 2);
        assert!(corpus.questions.len() > 150, "{}", corpus.questions.len());
        for question in &corpus.questions {
            let conversation = corpus.conversations.iter().find(|other| other.id == question.conversation);
            let messages = &conversation.expect("its conversation").messages;
            let evidence: Vec<String> =
                question.evidence.iter().map(|&id| messages[id as usize - 1].message.plain_text()).collect();
            for value in question.answer.split(", ").filter(|_| question.category == Category::Several) {
                assert!(evidence.iter().any(|text| text.contains(value)), "{question:?}: {evidence:?}");
            }
            if question.category != Category::Several {
                assert!(evidence[0].contains(&question.answer), "{question:?}: {evidence:?}");
            }
        }
        let lines = corpus.question_lines();
        assert_eq!(lines.lines().count(), corpus.questions.len());
        assert!(
            lines.contains(r#""category":"follow-up""#) && corpus.conversations[0].lines().contains(r#""role":"user""#)
        );
    }

    #[test]
    fn a_seed_gives_one_corpus() {
        assert_eq!(Corpus::of_seed(5, 1).question_lines(), Corpus::of_seed(5, 1).question_lines());
        assert_ne!(Corpus::of_seed(5, 1).conversations[0].lines(), Corpus::of_seed(6, 1).conversations[0].lines());
    }
}
