//! Facts that somebody says once and somebody asks for later.

use super::chance::Chance;

/// What people speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Chinese,
    English,
}

/// What somebody said of something.
#[derive(Clone, Debug)]
pub(super) struct Fact {
    language: Language,
    /// Of what; no two facts of a conversation have the same.
    subject: String,
    attribute: &'static str,
    pub value: String,
}

const NAMES: [(&str, &str); 24] = [
    ("青鳥", "Bluebird"),
    ("玄武", "Basalt"),
    ("晨星", "Daystar"),
    ("楓葉", "Maple"),
    ("海獅", "Sealion"),
    ("銀河", "Galaxy"),
    ("石榴", "Garnet"),
    ("燈塔", "Lighthouse"),
    ("白鷺", "Egret"),
    ("雲杉", "Spruce"),
    ("琥珀", "Amber"),
    ("極光", "Aurora"),
    ("河狸", "Beaver"),
    ("珊瑚", "Coral"),
    ("沙丘", "Dune"),
    ("灰狼", "Graywolf"),
    ("鳳梨", "Pineapple"),
    ("竹林", "Bamboo"),
    ("火山", "Volcano"),
    ("鯨魚", "Whale"),
    ("蜂巢", "Beehive"),
    ("羅盤", "Compass"),
    ("月台", "Platform"),
    ("茶壺", "Teapot"),
];

const ATTRIBUTES: [(&str, &str); 8] = [
    ("預算編號", "budget number"),
    ("上線密碼", "launch code"),
    ("客戶窗口分機", "contact extension"),
    ("資料庫連接埠", "database port"),
    ("合約號碼", "contract number"),
    ("機房櫃位", "rack position"),
    ("測試帳號", "test account"),
    ("罰款金額", "penalty amount"),
];

impl Fact {
    /// A fact that no other of the conversation is mistaken for.
    pub fn new(chance: &mut Chance, language: Language, number: usize) -> Fact {
        let name = chance.pick(&NAMES);
        let attribute = chance.pick(&ATTRIBUTES);
        let (name, attribute) = match language {
            Language::Chinese => (name.0, attribute.0),
            Language::English => (name.1, attribute.1),
        };
        Fact { language, subject: format!("{name}-{number}"), attribute, value: value(chance) }
    }

    /// The same of another value.
    pub fn changed(&self, chance: &mut Chance) -> Fact {
        Fact { value: value(chance), ..self.clone() }
    }

    /// A sentence that says it.
    pub fn said(&self) -> String {
        let Fact { subject, attribute, value, .. } = self;
        match self.language {
            Language::Chinese => format!("{subject} 專案的{attribute}是 {value}。"),
            Language::English => format!("The {attribute} of project {subject} is {value}."),
        }
    }

    /// A question that asks for it.
    pub fn question(&self) -> String {
        let Fact { subject, attribute, .. } = self;
        match self.language {
            Language::Chinese => format!("{subject} 專案的{attribute}是多少？"),
            Language::English => format!("What is the {attribute} of project {subject}?"),
        }
    }
}

/// Letters and digits that stand nowhere else.
fn value(chance: &mut Chance) -> String {
    let letter = |chance: &mut Chance| char::from(b'A' + chance.between(0..=25) as u8);
    let letters: String = (0..3).map(|_| letter(chance)).collect();
    format!("{letters}-{}", chance.between(10_000..=99_999))
}
