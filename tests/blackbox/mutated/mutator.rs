//! Makes of what is well formed what is not, or only just: the structure is known, so that most of it gets past the
//! first look.

use serde_json::{Map, Value, json};

use crate::moments::Moments;

/// What no id may be.
const NO_IDS: [&str; 8] = ["", "1 2", "U1:2", "U\u{0}", "\u{1b}[2J", "U\u{202e}1", "\u{200b}", "U1\n"];
/// How deep a value is buried, far beyond what any reader follows.
const DEPTH: usize = 10_000;
/// How long a long text is.
const LONG: usize = 100_000;

/// Something that was made worse.
pub struct Mutant {
    pub bytes: Vec<u8>,
    /// What has to be judged in its place, where a simple reader would not get through it or sees it otherwise.
    pub judged_as: Option<Value>,
    /// A reader that builds a value of all of it gives up.
    pub is_deep: bool,
    /// How often it comes.
    pub times: usize,
}

/// What may be exchanged, repeated, buried or replaced in a kind of text.
pub struct Kind {
    /// Where ids are.
    pub ids: &'static [&'static str],
    /// What else a reader looks at.
    pub looked_at: &'static [&'static str],
    /// The objects, the outermost first, each with a member that every reader looks at, and how it is judged that this is
    /// there twice.
    pub twice: &'static [(&'static str, &'static str, Twice)],
    /// Members that no reader looks at, and ones that it has to.
    pub ignored: &'static [&'static str],
}

/// What a member that is there twice is as good as.
#[derive(Clone, Copy)]
pub enum Twice {
    /// No object at all.
    Nothing,
    /// One of a type that nobody reads.
    Wrong,
    /// Itself.
    Once,
}

/// Makes one thing, or two, of a text worse.
pub fn mutate(dice: &mut Moments, mut value: Value, kind: &Kind) -> Mutant {
    let mut times = 1;
    for _ in 0..=dice.below(2) {
        match dice.below(8) {
            0 | 1 => remove(dice, &mut value),
            2 | 3 => exchange(dice, &mut value, kind),
            4 => spoil_id(dice, &mut value, kind),
            5 if dice.below(20) == 0 => lengthen(dice, &mut value),
            6 if dice.below(4) == 0 => return bury(dice, value, kind),
            6 => return repeat_key(dice, value, kind),
            7 => times = 2,
            _ => {}
        }
    }
    let mut bytes = value.to_string().into_bytes();
    match dice.below(6) {
        0 | 1 => flip(dice, &mut bytes),
        2 => bytes.truncate(dice.below(bytes.len() + 1)),
        3 if dice.below(4) == 0 => bytes.extend_from_slice(b"]"),
        _ => {}
    }
    Mutant { bytes, judged_as: None, times, is_deep: false }
}

/// A place in a value.
fn place(dice: &mut Moments, value: &Value) -> Vec<String> {
    let mut path = Vec::new();
    let mut at = value;
    loop {
        let names: Vec<String> = match at {
            Value::Object(members) => members.keys().cloned().collect(),
            Value::Array(items) => (0..items.len()).map(|index| index.to_string()).collect(),
            _ => return path,
        };
        if names.is_empty() || (!path.is_empty() && dice.below(3) == 0) {
            return path;
        }
        let name = names[dice.below(names.len())].clone();
        at = at.get(&name).or_else(|| at.get(name.parse::<usize>().ok()?)).expect("it was listed");
        path.push(name);
    }
}

fn pointer(path: &[String]) -> String {
    path.iter().map(|name| format!("/{name}")).collect()
}

fn remove(dice: &mut Moments, value: &mut Value) {
    let mut path = place(dice, value);
    let Some(name) = path.pop() else { return };
    match value.pointer_mut(&pointer(&path)) {
        Some(Value::Object(members)) => drop(members.remove(&name)),
        Some(Value::Array(items)) => drop(name.parse().map(|index: usize| items.remove(index))),
        _ => {}
    }
}

fn exchange(dice: &mut Moments, value: &mut Value, kind: &Kind) {
    let place = match dice.below(3) {
        0 => pointer(&place(dice, value)),
        1 => dice.one_of(kind.ids).to_owned(),
        _ => dice.one_of(kind.looked_at).to_owned(),
    };
    let Some(place) = value.pointer_mut(&place) else { return };
    let list = match &*place {
        Value::Object(members) => members.values().cloned().collect(),
        other => vec![other.clone()],
    };
    *place = match dice.below(9) {
        0 => Value::Null,
        1 => true.into(),
        2 => dice.below(4).into(),
        3 => (-1.5).into(),
        // No two of them the same, or one would be the other come again.
        4 => format!("x{}", dice.below(1_000_000_000)).into(),
        5 => json!({}),
        6 => json!({"a": {"b": [1, "c"]}}),
        7 => u64::MAX.into(),
        _ => list.into(),
    };
}

fn spoil_id(dice: &mut Moments, value: &mut Value, kind: &Kind) {
    let Some(id) = value.pointer_mut(dice.one_of(kind.ids)) else { return };
    *id = match dice.below(40) {
        0 => "1".repeat(LONG).into(),
        1..=4 => "1".repeat(129).into(),
        _ => dice.one_of(&NO_IDS).into(),
    };
}

fn lengthen(dice: &mut Moments, value: &mut Value) {
    let path = place(dice, value);
    if let Some(Value::String(text)) = value.pointer_mut(&pointer(&path)) {
        *text = dice.one_of(&["x", "\u{202e}", "預", "\"\\", "\u{1}"]).repeat(LONG / 3);
    }
}

fn flip(dice: &mut Moments, bytes: &mut [u8]) {
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len());
        bytes[at] ^= 1 << dice.below(8);
    }
}

/// Puts a value that is deeper than anybody follows where nobody looks, or where somebody does.
fn bury(dice: &mut Moments, mut value: Value, kind: &Kind) -> Mutant {
    const HERE: &str = "the deep";
    let deep = [("[", "]"), ("{\"a\":", "}")][dice.below(2)];
    let deep = format!("{}7{}", deep.0.repeat(DEPTH), deep.1.repeat(DEPTH));
    let ignored = dice.one_of(kind.ignored);
    let (parent, name) = ignored.rsplit_once('/').expect("a pointer");
    let place = value.pointer_mut(parent).and_then(Value::as_object_mut);
    let Some(place) = place.filter(|_| dice.below(3) > 0) else {
        return Mutant { bytes: deep.into_bytes(), judged_as: Some(json!([])), times: 1, is_deep: true };
    };
    place.insert(name.to_owned(), HERE.into());
    let bytes = value.to_string().replace(&format!("\"{HERE}\""), &deep).into_bytes();
    Mutant { bytes, judged_as: Some(value), times: 1, is_deep: true }
}

/// Says a member twice.
fn repeat_key(dice: &mut Moments, mut value: Value, kind: &Kind) -> Mutant {
    const HERE: &str = "here it is said again";
    let (object, name, twice) = kind.twice[dice.below(kind.twice.len())];
    let said = value.pointer(object).and_then(|object| object.get(name)).cloned();
    let (Some(said), Some(Value::Object(members))) = (said, value.pointer_mut(object)) else {
        return Mutant { bytes: value.to_string().into_bytes(), judged_as: None, times: 1, is_deep: false };
    };
    let mut marked = Map::clone(members);
    marked.insert(HERE.to_owned(), said);
    let unmarked = std::mem::replace(members, marked);
    let bytes = value.to_string().replace(&format!("\"{HERE}\""), &format!("\"{name}\"")).into_bytes();
    let members = value.pointer_mut(object).and_then(Value::as_object_mut).expect("it is one");
    *members = unmarked;
    match twice {
        Twice::Nothing => value = json!([]),
        Twice::Wrong => drop(members.insert(name.to_owned(), json!({"wrong": true}))),
        Twice::Once => {}
    }
    Mutant { bytes, judged_as: Some(value), times: 1, is_deep: false }
}
