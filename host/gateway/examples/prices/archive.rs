//! The calls that look into the archive.

use crate::{
    cases::{BACK, Case, LONG, numbers, plan, transcript},
    component::DATA,
};

pub fn all() -> Vec<Case> {
    let rare = "case 4711 run 90210";
    let common = "someone looked decided others run case 廣告預算 採購單 庫存盤點 before left wrote down came again";
    let chinese = "的一是不了人我在有他這為之大來以個中上們到說國和地也子時道出而要於就下得可你年生自會那後能對著事其里所去行過家十用發天如然作方成者多日都三小軍二無同麼經法當起與好看學進種將還分此心前面又定見只主沒公從";
    let long: String = (0..48)
        .map(|at| format!("{}-{at} ", (0..40).map(|n| format!("case{}", at * 40 + n)).collect::<Vec<_>>().join(".")))
        .collect();
    let search = |with, data: &str| {
        transcript("transcript.search", with, &format!("(i32.const {DATA}) (i32.const {}) (i32.const 200)", data.len()))
            .data(data)
            .most(8)
    };
    let edits = |count: u32| {
        format!(
            "(loop $e (call $remove (local.get $plan) (local.get $i) (i32.add (local.get $i) (i32.const 1))) (br_if $e \
             (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 2))) (i32.const {count}))))"
        )
    };
    vec![
        search("no word", " "),
        search("a word that nobody said", "zyzzyva"),
        search("rare words", rare),
        search("common words", common),
        search("200 Chinese characters", &chinese.repeat(2)),
        search("words of 40 parts", &long[..long.len().min(30_000)]),
        search("rare words, 50,000 edits", rare).before(&edits(100_000)),
        transcript("transcript.search", "after the eighth", &format!("(i32.const {DATA}) (i32.const 20) (i32.const 200)"))
            .data(rare)
            .before(&format!("(loop $s (call $search (local.get $transcript) (i32.const {DATA}) (i32.const 1) (i32.const 1) (i32.const {BACK})) (br_if $s (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 8))))")),
        transcript("transcript.archived-text", "no such number", &numbers(&[200_000, 0, 10])),
        transcript("transcript.archived-text", "a number again", &numbers(&[7, 0, 10])),
        transcript("transcript.archived-text", "20,000 characters again", &numbers(&[LONG, 0, 20_000])),
        transcript("transcript.archived-text", "every number", "(i32.mul (local.get $i) (i32.const 47)) (i32.const 0) (i32.const -1)").most(2_000),
        transcript("transcript.archived-text", "every long one", "(i32.add (i32.mul (local.get $i) (i32.const 100)) (i32.const 3)) (i32.const 0) (i32.const -1)").most(1_000),
        transcript("transcript.archived-text", "after the 2,000 messages that may be read", "(local.get $i) (i32.const 0) (i32.const 10)")
            .before(&format!("(local.set $i (i32.const 50000)) (loop $e (call $archived-origins (local.get $transcript) (local.get $i) (i32.add (local.get $i) (i32.const 200)) (i32.const {BACK})) (br_if $e (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 200))) (i32.const 52000))))")),
        transcript("transcript.archived-tokens", "an empty range", &numbers(&[5, 5])),
        transcript("transcript.archived-tokens", "200 again", &numbers(&[0, 200])),
        transcript("transcript.archived-tokens", "200 each time", "(i32.mul (local.get $i) (i32.const 200)) (i32.const -1)").most(9),
        transcript("transcript.archived-tokens", "one again, 50,000 edits", &numbers(&[5, 6])).before(&edits(100_000)).most(2_000),
        transcript("transcript.archived-origins", "200 again", &numbers(&[0, 200])),
        transcript("transcript.archived-origins", "200 each time", "(i32.mul (local.get $i) (i32.const 200)) (i32.const -1)").most(9),
        transcript("transcript.archived-origins", "no such number", &numbers(&[200_000, 200_001])),
        plan("plan.recall", "no such number", "recall", &numbers(&[200_000, 10])),
        plan("plan.recall", "the same again", "recall", &numbers(&[7, 4_000])),
        plan("plan.recall", "the same long one again", "recall", &numbers(&[LONG, 4_000])),
        plan("plan.recall", "another long one each time", "recall", "(i32.add (i32.mul (local.get $i) (i32.const 100)) (i32.const 3)) (i32.const 4000)").most(500),
    ]
}
