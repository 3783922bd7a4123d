//! Decides whether a text that was found answers the question, by how much of the question it covers, not by what it
//! lacks.
//!
//! People ask in their own words, so most words of a question may occur in no text at all; they must not outweigh the
//! one that does. [`evidence`] adds up the terms that *are* found, each weighted by how rare it is and by where it
//! occurs. The unit is a word: 1 is the weight of a word that occurs in no other text. Whether the sum is enough is
//! determined by the scores of questions that are known to be about something else ([`Floor`]).

use std::collections::HashSet;

use crate::{
    asked::{Asked, Term},
    frequencies::Frequencies,
    script::fold,
    terms::terms,
};

/// A smaller collection is treated as if it had this many texts: of three texts, most words occur in many.
const MIN_COLLECTION: f64 = 100.0;

/// The weight of a term in a phrasing, in the tags, in all phrasings (by the share that contain it), and elsewhere.
const IN_PHRASING: f64 = 0.8;
const IN_TAGS: f64 = 1.0;
const IN_ALL_PHRASINGS: f64 = 0.8;
const IN_REST: f64 = 0.3;

/// An identifier is specific, wherever it occurs.
const NAME_IN_REST: f64 = 0.8;

/// Each word that no text contains reduces the evidence by this much, up to a maximum number: a long message may
/// surround one question. Everyday words do not reduce it, nor do pairs that may be no words.
const UNKNOWN: f64 = 0.08;
const MAX_UNKNOWN: usize = 10;

/// A question that covers at least this share of what the text's own question covers is about the text, however common
/// its words are.
const OF_ITS_OWN: f64 = 0.5;

/// A text, indexed by what it can be asked for.
#[derive(Clone, Debug, Default)]
pub struct IndexedText {
    /// The terms of the question it answers, and of other ways to ask it.
    phrasings: Vec<HashSet<String>>,
    tags: HashSet<String>,
    rest: HashSet<String>,
    /// Its own question.
    own: Asked,
}

impl IndexedText {
    /// Indexes a text that answers `question`, which may also be asked in other ways.
    pub fn new(question: &str, asked_as: &[String], tags: &str, rest: &str) -> Self {
        let other = asked_as.iter().map(String::as_str);
        IndexedText {
            phrasings: [question].into_iter().chain(other).map(set).collect(),
            tags: set(tags),
            rest: set(rest),
            own: Asked::new(question),
        }
    }

    /// The weight of a term in this text by where it occurs; 0 if it does not.
    fn weight(&self, term: &Term, phrasing: &HashSet<String>) -> f64 {
        let counts = |holds: bool, weight: f64| if holds { weight } else { 0.0 };
        let in_rest = if term.is_name { NAME_IN_REST } else { IN_REST };
        let term = &term.text;
        let with_it = self.phrasings.iter().filter(|phrasing| phrasing.contains(term)).count() as f64;
        let often = counts(phrasing.contains(term), IN_PHRASING)
            + counts(self.tags.contains(term), IN_TAGS)
            + IN_ALL_PHRASINGS * with_it / self.phrasings.len().max(1) as f64
            + counts(self.rest.contains(term), in_rest);
        // Twice as often does not count twice as much.
        often * 2.0 / (often + 1.0)
    }

    /// Whether a question covers at least half as much of what the text can be asked for as the text's own question
    /// does: then it is about the text, even if each of its words occurs in many texts. The rest of the text does not
    /// count: a long one shares words with any question.
    pub fn is_asked_for(&self, asked: &Asked) -> bool {
        let says = |asked: &Asked| {
            let held = asked.terms().iter().filter(|term| self.is_asked_with(&term.text));
            held.fold((0, 0.0), |(terms, weight), term| (terms + 1, weight + term.weight))
        };
        let ((shared, covered), (_, own)) = (says(asked), says(&self.own));
        shared > 1 && own > 0.0 && covered >= OF_ITS_OWN * own
    }

    fn is_asked_with(&self, term: &str) -> bool {
        self.phrasings.iter().chain([&self.tags]).any(|terms| terms.contains(term))
    }
}

/// All terms of a text that a [question](crate::asked) can match.
pub fn folded_terms(text: &str) -> Vec<String> {
    terms(&fold(text))
}

fn set(text: &str) -> HashSet<String> {
    folded_terms(text).into_iter().collect()
}

/// How much of a question a text covers, measured in rare words. The best phrasing counts.
pub fn evidence(asked: &Asked, frequencies: &Frequencies, told: &IndexedText) -> f64 {
    let is_unknown = |term: &&Term| term.is_missed && frequencies.documents(&term.text) == 0;
    let unknown = asked.terms().iter().filter(is_unknown).count();
    found(asked, frequencies, told) / (1.0 + UNKNOWN * unknown.min(MAX_UNKNOWN) as f64)
}

fn found(asked: &Asked, frequencies: &Frequencies, told: &IndexedText) -> f64 {
    let total = (frequencies.total() as f64).max(MIN_COLLECTION);
    let rarest = rarity(1.0, total);
    let in_phrasing = |phrasing: &HashSet<String>| {
        let of_term = |term: &Term| {
            let documents = frequencies.documents(&term.text).max(1) as f64;
            term.weight * rarity(documents, total) / rarest * told.weight(term, phrasing)
        };
        asked.terms().iter().map(of_term).sum::<f64>()
    };
    told.phrasings.iter().map(in_phrasing).fold(0.0, f64::max)
}

/// The minimum evidence of a relevant text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor(f64);

impl Floor {
    /// The floor's bounds: less than a rare word in one of the phrasings is never enough, and little more always is.
    const LEAST: f64 = 0.8;
    const MOST: f64 = 0.93;

    /// This share of the scores of unrelated texts lies below the floor.
    const BELOW: f64 = 0.8;

    /// With fewer scores nothing can be concluded.
    const LEAST_SCORES: usize = 16;

    /// The floor of a collection, from the best scores among *other* texts of questions whose answer is known.
    pub fn of(mut others: Vec<f64>) -> Self {
        others.sort_by(f64::total_cmp);
        let at = (others.len() as f64 * Self::BELOW) as usize;
        let below = others.get(at).filter(|_| others.len() >= Self::LEAST_SCORES);
        Floor::from_value(below.copied().unwrap_or(Self::LEAST))
    }

    /// Restores a stored floor.
    pub fn from_value(value: f64) -> Self {
        Floor(value.clamp(Self::LEAST, Self::MOST))
    }

    /// The value to store.
    pub fn value(self) -> f64 {
        self.0
    }

    /// Whether this evidence is enough.
    pub fn is_reached(self, evidence: f64) -> bool {
        evidence >= self.0
    }
}

/// The inverse document frequency of BM25, in the variant that is never negative.
fn rarity(documents: f64, total: f64) -> f64 {
    (1.0 + (total - documents + 0.5).max(0.5) / (documents + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// The evidence for the first of these texts, each a question with tags.
    fn first_of(question: &str, texts: &[(&str, &str)]) -> f64 {
        let terms: Vec<HashSet<String>> = texts.iter().map(|(asked, tags)| set(&format!("{asked}\n{tags}"))).collect();
        let asked = Asked::new(question);
        let documents =
            |term: &str| Ok::<_, Infallible>(terms.iter().filter(|text| text.contains(term)).count() as u64);
        let words = asked.terms().iter().map(|term| term.text.as_str());
        let Ok(frequencies) = Frequencies::of_terms(words, texts.len() as u64, documents);
        evidence(&asked, &frequencies, &IndexedText::new(texts[0].0, &[], texts[0].1, ""))
    }

    const KNOWN: [(&str, &str); 3] =
        [("退款什麼時候會到帳？", "退款 信用卡"), ("發票怎麼作廢", "發票"), ("Who owns sales_performances?", "erp")];

    /// Regression: a question was rated by the share of it that was found, so that words in no atom weighed most.
    #[test]
    fn what_no_text_speaks_of_does_not_outweigh_what_one_does() {
        for question in ["退款要等幾天", "我的退款怎麼還沒到", "退款什麼時候會到", "退款"] {
            assert!(Floor::of(vec![]).is_reached(first_of(question, &KNOWN)), "{question}");
        }
        for question in ["今天午餐吃什麼", "幫我寫一首詩", "什麼時候會下雨", ""] {
            assert!(!Floor::of(vec![]).is_reached(first_of(question, &KNOWN)), "{question}");
        }
    }

    #[test]
    fn either_script_finds_the_other() {
        assert!((first_of("退款什么时候到账", &KNOWN) - first_of("退款什麼時候到帳", &KNOWN)).abs() < 1e-9);
    }

    #[test]
    fn a_word_of_everyday_talk_or_of_many_texts_says_less() {
        let many = [("預算誰簽核", ""), ("預算表在哪裡", ""), ("預算超支", "")];
        assert!(first_of("預算", &many) < first_of("預算", &[many[0]]));
        assert!(first_of("公司", &[("公司章程", "")]) < first_of("章程", &[("公司章程", "")]));
    }

    #[test]
    fn a_name_is_what_it_names_and_its_parts_are_not() {
        let texts = [KNOWN[2], KNOWN[0]];
        assert!(first_of("SalesPerformances 這張表今天的數字為什麼不對", &texts) > 1.0);
        assert!(!Floor::of(vec![]).is_reached(first_of("why does sales_targets show stale numbers", &texts)));
    }

    #[test]
    fn what_says_half_of_a_text_asks_for_it() {
        let told = IndexedText::new("系統設定 42 的預設值是多少？", &[], "", "");
        assert!(told.is_asked_for(&Asked::new("系統設定的預設值")));
        assert!(!told.is_asked_for(&Asked::new("系統什麼時候維護")) && !told.is_asked_for(&Asked::new("42")));
    }

    /// Regression: an answer of some hundred characters shared enough words with half of all questions.
    #[test]
    fn a_text_with_a_long_answer_was_asked_for_by_unrelated_questions() {
        let answer =
            "群組的班表由主管排，行銷的素材找設計，訪客先到櫃台換證，出貨單由倉庫確認後交給司機簽收，退貨要附發票。";
        let told = IndexedText::new("發票作廢？", &[], "發票", answer);
        assert!(told.is_asked_for(&Asked::new("請問發票可以作廢嗎")));
        for question in ["群組的班表誰排的", "出貨單要給司機簽收嗎", "行銷的素材在哪裡"] {
            assert!(!told.is_asked_for(&Asked::new(question)), "{question}");
        }
        // Its own question has only stop words.
        let told = IndexedText::new("這是什麼？", &[], "出貨 司機", answer);
        assert!(!told.is_asked_for(&Asked::new("出貨的司機")));
    }

    #[test]
    fn the_floor_is_what_others_score_within_bounds() {
        let floor = |scores: &[f64]| Floor::of(scores.to_vec()).value();
        assert_eq!(floor(&[9.0; 15]).to_bits(), Floor::LEAST.to_bits());
        assert_eq!(floor(&[0.0; 99]).to_bits(), Floor::LEAST.to_bits());
        assert_eq!(floor(&[9.0; 99]).to_bits(), Floor::MOST.to_bits());
        let scores: Vec<f64> = (0..20).map(|n| 0.7 + 0.01 * f64::from(n)).collect();
        assert!((floor(&scores) - 0.86).abs() < 1e-9);
    }
}
