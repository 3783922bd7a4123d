//! How many questions find the atom that answers them, and how many that none answers are shown one all the same.

use std::{fs, path::Path};

use pmk_knowledge::{Library, MAX_RETRIEVED};
use serde::Deserialize;

/// When the atoms were written; nothing hangs on it.
const NOW_MS: i64 = 1_777_342_416_133;

/// A part of the set, as it lies in `tests/retrieval`.
#[derive(Debug, Deserialize)]
pub struct Part {
    #[serde(rename = "atom")]
    pub atoms: Vec<Known>,
    other: Other,
}

/// What somebody knows, and how people ask for it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Known {
    pub question: String,
    tags: Vec<String>,
    answer: String,
    pub asked_as: Vec<String>,
    pub asked: Vec<String>,
}

/// What none of it answers.
#[derive(Debug, Deserialize)]
struct Other {
    talk: Vec<String>,
    near: Vec<String>,
}

/// Whether the atoms carry other phrasings, as they do since extractions write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedAs {
    Written,
    Missing,
}

/// What came of asking everything.
#[derive(Debug, Default)]
pub struct Figures {
    pub asked: usize,
    pub found_first: usize,
    pub found: usize,
    pub other: usize,
    /// Each question that did not find its atom, and what it found instead.
    pub missed: Vec<(String, Vec<String>)>,
    /// Each question that none answers and that was shown one, with what it was shown.
    pub wrong: Vec<(String, Vec<String>)>,
}

impl Part {
    /// Reads a part by its name.
    pub fn read(name: &str) -> Part {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/retrieval").join(format!("{name}.toml"));
        let text = fs::read_to_string(&path).expect("the set is in the repository");
        toml::from_str(&text).expect("the set is a set")
    }

    /// Questions that no atom answers.
    pub fn other(&self) -> impl Iterator<Item = &String> {
        self.other.talk.iter().chain(&self.other.near)
    }

    /// Asks everything of libraries that hold so many of the atoms each.
    pub fn measure(&self, asked_as: AskedAs, atoms_each: usize) -> Figures {
        let mut figures = Figures::default();
        for atoms in self.atoms.chunks(atoms_each) {
            let home = tempfile::tempdir().expect("a temporary folder");
            fill(home.path(), atoms, asked_as);
            let mut library = Library::open(home.path()).expect("a new home");
            for known in atoms {
                known.asked.iter().for_each(|asked| figures.ask(&mut library, asked, &known.question));
            }
            self.other().for_each(|asked| figures.ask_other(&mut library, asked));
        }
        figures
    }
}

impl Figures {
    fn ask(&mut self, library: &mut Library, asked: &str, expected: &str) {
        let found = retrieve(library, asked);
        let at = found.iter().position(|question| question == expected);
        self.asked += 1;
        self.found_first += usize::from(at == Some(0));
        self.found += usize::from(at.is_some());
        if at.is_none() {
            self.missed.push((asked.to_owned(), found));
        }
    }

    fn ask_other(&mut self, library: &mut Library, asked: &str) {
        let found = retrieve(library, asked);
        self.other += 1;
        if !found.is_empty() {
            self.wrong.push((asked.to_owned(), found));
        }
    }

    /// The share of questions that found their atom among the first three.
    pub fn found_share(&self) -> f64 {
        self.found as f64 / self.asked as f64
    }

    /// The share of questions that none answers and that were shown one.
    pub fn wrong_share(&self) -> f64 {
        self.wrong.len() as f64 / self.other as f64
    }
}

fn retrieve(library: &mut Library, asked: &str) -> Vec<String> {
    let found = library.retrieve(asked, NOW_MS, MAX_RETRIEVED).expect("a readable home");
    found.into_iter().map(|stored| stored.atom.meta.question).collect()
}

/// Writes the files as people could: what stands in them is what counts, not who wrote it.
pub fn fill(home: &Path, atoms: &[Known], asked_as: AskedAs) {
    let folder = home.join("knowledge/general");
    fs::create_dir_all(&folder).expect("a temporary folder");
    for (n, known) in atoms.iter().enumerate() {
        let list = |list: &[String]| serde_json::to_string(list).expect("texts");
        let phrasings = match asked_as {
            AskedAs::Written => format!("asked-as: {}\n", list(&known.asked_as)),
            AskedAs::Missing => String::new(),
        };
        let text = |text: &str| serde_json::to_string(text).expect("a text");
        let (question, answer) = (text(&known.question), &known.answer);
        let front = format!("id: a{n}\nquestion: {question}\ntags: {}\n{phrasings}", list(&known.tags));
        let file = format!("---\n{front}summary: {}\n---\n\n## Answer\n\n{answer}\n", text(answer));
        fs::write(folder.join(format!("a{n}.md")), file).expect("a temporary folder");
    }
}
