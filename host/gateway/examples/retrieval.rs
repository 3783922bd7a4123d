//! The table of `docs/retrieval.md`: how many questions find the atom that answers them, how many that none answers are
//! shown one all the same, and which.
//!
//! `cargo run --workspace --example retrieval` prints it.

#[path = "retrieval/measure.rs"]
mod measure;

use measure::{AskedAs, Figures, Part};

/// As many as a team has after its first week.
const FEW: usize = 8;

fn main() {
    println!("| part | library | `asked-as` | found first | found among three | shown although none answers |");
    println!("|---|---|---|---|---|---|");
    let mut lists = String::new();
    for name in ["tuned-1", "tuned-2", "held-out"] {
        let part = Part::read(name);
        for each in [part.atoms.len(), FEW] {
            for (asked_as, title) in [(AskedAs::Written, "written"), (AskedAs::Missing, "missing")] {
                let figures = part.measure(asked_as, each);
                println!("| {name} | of {each} | {title} | {} |", row(&figures));
                if each > FEW {
                    lists.push_str(&list(&format!("{name}, `asked-as` {title}"), &figures));
                }
            }
        }
    }
    println!("{lists}");
}

fn row(figures: &Figures) -> String {
    let Figures { asked, found_first, found, other, wrong, .. } = figures;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    format!(
        "{found_first} of {asked} | {found} of {asked}, {} | {} of {other}, {}",
        percent(figures.found_share()),
        wrong.len(),
        percent(figures.wrong_share())
    )
}

fn list(title: &str, figures: &Figures) -> String {
    let lines = |heading: &str, list: &[(String, Vec<String>)]| {
        let line = |(asked, found): &(String, Vec<String>)| format!("- {asked} → {}\n", found.join(" · "));
        format!("\n{heading}, {title}:\n\n{}", list.iter().map(line).collect::<String>())
    };
    lines("Missed", &figures.missed) + &lines("Shown although none answers", &figures.wrong)
}
