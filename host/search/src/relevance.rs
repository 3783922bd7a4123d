//! Does what was found have anything to do with the question?
//!
//! BM25 orders, but its values mean nothing on their own: the best match of a bad lot looks like any
//! other. What can be judged is *how much of the question* a text speaks of, each word weighed by how
//! rare it is in the collection.

use std::collections::HashSet;

use crate::{
    frequencies::Frequencies,
    query::{Query, Unit},
    terms::terms,
};

/// A collection smaller than this is judged as if it had this many texts. Otherwise, with three texts,
/// every word that occurs would count as common and every word that does not as precious.
const MIN_COLLECTION: f64 = 1_000.0;

/// Words beyond this many, the rarest first, do not count as missing: a long message may wrap one question.
const MAX_EXPECTED: usize = 10;

/// A part of a word is not the word.
const PART: f64 = 0.6;

/// A question that names an identifier is about that more than about its other words.
const IDENTIFIER: f64 = 2.0;

/// A text whose subject names an identifier of the question covers at least so much of it, whatever sentence
/// stands around the identifier, as long as no more than so many texts name it.
const NAMED: f64 = 0.5;
const MOST_NAMED: u64 = 5;

/// How much of a question a text speaks of: 0 not at all, 1 all of it.
///
/// `fields` are the text's parts, its subject first, each with how much a word found only there counts (0 to 1).
pub fn coverage(query: &Query, frequencies: &Frequencies, fields: &[(&str, f64)]) -> f64 {
    let fields: Vec<(HashSet<String>, f64)> =
        fields.iter().map(|(text, credit)| (terms(text).into_iter().collect(), *credit)).collect();
    let total = (frequencies.total() as f64).max(MIN_COLLECTION);
    let mut weights = Vec::with_capacity(query.units().len());
    let mut covered = 0.0;
    for unit in query.units() {
        let rarest = unit.terms().map(|term| frequencies.documents(term)).min().unwrap_or(0) as f64;
        let weight = rarity(rarest, total) * if unit.identifier { IDENTIFIER } else { 1.0 };
        weights.push(weight);
        covered += weight * fields.iter().map(|(found, credit)| credit * share(unit, found)).fold(0.0, f64::max);
    }
    weights.sort_by(|a, b| b.total_cmp(a));
    let expected: f64 = weights.iter().take(MAX_EXPECTED).sum();
    let is_named = |unit: &&Unit| {
        let whole = unit.whole.as_ref().filter(|_| unit.identifier);
        whole.is_some_and(|whole| fields[0].0.contains(whole) && frequencies.documents(whole) <= MOST_NAMED)
    };
    let least = if query.units().iter().any(|unit| is_named(&unit)) { NAMED * fields[0].1 } else { 0.0 };
    if expected > 0.0 { (covered / expected).clamp(least, 1.0) } else { 0.0 }
}

/// How much of one word is found.
fn share(unit: &Unit, found: &HashSet<String>) -> f64 {
    let parts = unit.parts.iter().filter(|part| found.contains(*part)).count() as f64 / unit.parts.len().max(1) as f64;
    match &unit.whole {
        Some(whole) if found.contains(whole) => 1.0,
        Some(_) => parts * PART,
        None => parts,
    }
}

/// BM25's inverse document frequency, in the form that is never negative.
fn rarity(documents: f64, total: f64) -> f64 {
    (1.0 + (total - documents + 0.5).max(0.5) / (documents + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_found_in_whatever_sentence() {
        let atom = "How often is sales_performances rebuilt?";
        for question in [
            "想請問一下 sales_performances 這張表通常是每天什麼時間重新產生資料的呢，謝謝",
            "why does sales_performances show stale numbers to my customers this morning",
        ] {
            assert!(plain(question, atom) >= 0.5, "{question}: {}", plain(question, atom));
        }
        assert!(plain("why does sales_targets show stale numbers to my customers this morning", atom) < 1.0 / 3.0);
    }

    fn plain(question: &str, text: &str) -> f64 {
        coverage(&Query::new(question), &Frequencies::default(), &[(text, 1.0)])
    }

    #[test]
    fn the_same_question_is_covered_whole_and_another_not_at_all() {
        assert!((plain("廣告預算怎麼分配", "廣告預算分配比例") - 1.0).abs() < 1e-9);
        assert!(plain("今天午餐吃什麼", "廣告預算分配比例").abs() < 1e-9);
        assert!(plain("", "anything").abs() < 1e-9);
    }

    #[test]
    fn a_common_word_covers_less_than_a_rare_one() {
        let query = Query::new("erp margin");
        let documents = |term: &str| Ok::<_, std::convert::Infallible>(if term == "erp" { 900 } else { 2 });
        let Ok(frequencies) = Frequencies::count(&query, 1_000, documents);
        let common = coverage(&query, &frequencies, &[("erp", 1.0)]);
        let rare = coverage(&query, &frequencies, &[("margin", 1.0)]);
        assert!(common < 0.1 && rare > 0.9, "{common} {rare}");
    }

    #[test]
    fn a_part_of_an_identifier_counts_less_than_the_whole() {
        let whole = plain("sales_performances", "the table sales_performances");
        let part = plain("sales_performances", "sales went up");
        assert!((whole - 1.0).abs() < 1e-9 && part < 0.34, "{whole} {part}");
    }

    #[test]
    fn a_named_identifier_outweighs_the_words_around_it() {
        let named = plain("sales_performances copper nickel", "sales_performances");
        let word = plain("sales copper nickel", "sales");
        assert!(named > 0.49 && word < 0.34, "{named} {word}");
    }

    #[test]
    fn a_word_found_only_in_a_lesser_field_counts_less() {
        let query = Query::new("margin");
        let of = |credit| coverage(&query, &Frequencies::default(), &[("margin", credit)]);
        assert!(of(0.5) < of(1.0));
    }
}
