//! A conversation as it grows.

use serde_json::{Value, json};

use super::{
    Conversation, Range,
    chance::Chance,
    facts::{Fact, Language},
    question,
};

const CHINESE: [&str; 20] = [
    "這週的報表我再看一次",
    "昨天會議的結論還沒寫進文件",
    "供應商說要等到月底",
    "測試環境今天早上有點慢",
    "請幫我整理成三點",
    "這個欄位在舊系統裡叫別的名字",
    "我跟財務確認過了",
    "如果客戶再問就先這樣回",
    "上一版的設計其實也可以",
    "我們先不要動資料庫",
    "那個按鈕在手機上看不到",
    "下午的展示改到線上",
    "記得把權限收回來",
    "這段程式是外包寫的",
    "文件要中英文都有",
    "倉庫那邊回覆說沒有問題",
    "匯入的時候會漏掉最後一筆",
    "稽核要看去年的紀錄",
    "先用假的資料試試看",
    "大家對這個流程都不太熟",
];

const ENGLISH: [&str; 20] = [
    "I looked at the weekly report again",
    "the minutes of yesterday are not in the wiki yet",
    "our supplier asks for time until the end of the month",
    "staging was rather slow this morning",
    "please boil that down to three points",
    "the old system has another name for that column",
    "finance has confirmed it",
    "if the customer asks again we say just that",
    "the earlier design would have done as well",
    "let us leave the database alone for now",
    "nobody can see that button on a phone",
    "the demo of this afternoon moves online",
    "somebody should take those permissions back",
    "a contractor wrote that part",
    "the manual is needed in both languages",
    "the warehouse sees no problem with it",
    "the import drops the last row every time",
    "the auditors want the records of last year",
    "we can try it with made-up data first",
    "few of us know that process well",
];

const LOG: [&str; 12] = [
    "src/orders/import.rs:120: let rows = reader.rows()?;",
    "src/orders/export.rs:44: pub fn export(orders: &[Order]) -> Result<Vec<u8>, ExportError> {",
    "2026-04-17T08:12:44Z INFO http request finished status=200 ms=18",
    "2026-04-17T08:12:45Z WARN pool connections waiting=7",
    "{\"level\":\"info\",\"route\":\"/api/v2/invoices\",\"tenant\":\"t-118\",\"ms\":41}",
    "test orders::tests::an_empty_order_is_refused ... ok",
    "drwxr-xr-x  5 deploy deploy  4096 Apr 17 08:02 releases",
    "| 4711 | open   | 2026-04-02 | 18,400 |",
    "    at com.example.billing.Ledger.post(Ledger.java:311)",
    "-    timeout: 30s",
    "+    timeout: 45s",
    "SELECT id, status FROM invoices WHERE due < now() ORDER BY id LIMIT 50;",
];

/// A fact and where it was said.
struct Planted {
    fact: Fact,
    id: String,
    category: &'static str,
    turn: usize,
}

/// A conversation as it grows.
pub(super) struct Talk {
    name: String,
    language: Language,
    messages: Vec<Value>,
    /// The ids of the last message of each turn.
    ends: Vec<String>,
    planted: Vec<Planted>,
    calls: usize,
}

impl Talk {
    pub fn new(name: String, language: Language) -> Talk {
        Talk { name, language, messages: vec![], ends: vec![], planted: vec![], calls: 0 }
    }

    /// The knowledge-base seed, and that it was read.
    pub fn seed(&mut self, chance: &mut Chance, chars: usize) {
        let documents = self.chatter(chance, chars);
        self.say("user", json!(format!("我先把 workspace 的 PKB context 給你（請當作 ground truth）：\n{documents}")));
        self.say("assistant", json!("了解，已載入 workspace PKB context。"));
    }

    /// A message and its answer; now and then with a fact, or with another value of an old one.
    pub fn turn(&mut self, chance: &mut Chance, chars: Range) {
        let length = chance.between(chars.clone());
        let mut text = self.chatter(chance, length);
        let fact = if chance.one_in(3) { Some(self.fact(chance)) } else { None };
        if let Some((fact, _)) = &fact {
            text = format!("{text}\n{}", fact.said());
        }
        let id = self.say("user", json!(text));
        if let Some((fact, category)) = fact {
            self.plant(fact, id, category);
        }
        let length = chance.between(chars);
        self.answer(chance, length);
    }

    /// A message, calls of tools at once, what they returned, and the answer.
    pub fn turn_with_tools(&mut self, chance: &mut Chance, count: usize, chars: Range) {
        let text = self.chatter(chance, 60);
        self.say("user", json!(text));
        let first = self.calls;
        self.calls += count;
        let tool = chance.pick(&["grep", "read_file", "run_tests", "query"]);
        let calls: Vec<Value> = (first..self.calls)
            .map(|n| json!({"type": "tool_use", "id": format!("call-{n}"), "name": tool, "input": {"n": n}}))
            .collect();
        self.say("assistant", json!(calls));
        let telling = chance.between(first..=self.calls - 1);
        let mut fact = None;
        let mut results = Vec::with_capacity(count);
        for n in first..self.calls {
            let length = chance.between(chars.clone());
            let mut content = log(chance, length);
            if n == telling && chance.one_in(2) {
                let found = self.new_fact(chance);
                content = format!("{content}\n{}", found.said());
                fact = Some(found);
            }
            results.push(json!({"type": "tool_result", "tool_use_id": format!("call-{n}"), "content": content}));
        }
        let id = self.say("user", json!(results));
        if let Some(fact) = fact {
            self.plant(fact, id, "tool-result");
        }
        self.answer(chance, 120);
    }

    /// A message, a question to `mra`, what it found, and the answer.
    pub fn turn_with_mra(&mut self, chance: &mut Chance, chars: Range) {
        let text = self.chatter(chance, 80);
        self.say("user", json!(text));
        self.say("assistant", json!("```mra-ask\nrepo: erp\nquestion: 這段流程在哪裡處理？\n```"));
        let length = chance.between(chars);
        let mut found = format!("這是 `mra ask erp` 的結果：\n{}", log(chance, length / 2));
        let fact = chance.one_in(2).then(|| self.new_fact(chance));
        if let Some(fact) = &fact {
            found = format!("{found}\n{}\n{}", fact.said(), log(chance, length / 2));
        }
        let id = self.say("user", json!(found));
        if let Some(fact) = fact {
            self.plant(fact, id, "mra-result");
        }
        self.answer(chance, 200);
    }

    /// Asks for what was said: some of it soon, some at the end.
    pub fn finish(mut self, chance: &mut Chance) -> Conversation {
        if self.planted.is_empty() {
            let fact = self.new_fact(chance);
            let id = self.say("user", json!(fact.said()));
            self.plant(fact, id, "said-once");
            self.answer(chance, 40);
        }
        let turns = self.ends.len();
        let mut questions = Vec::new();
        for Planted { fact, id, category, turn } in &self.planted {
            let soon = turn + chance.between(2..=12);
            for after in [(soon < turns).then(|| self.ends[soon].as_str()), None] {
                // What was changed meanwhile would be asked for with an old answer.
                let until = if after.is_some() { soon } else { turns };
                let is_current = !self
                    .planted
                    .iter()
                    .any(|other| other.turn > *turn && other.turn <= until && other.fact.question() == fact.question());
                if is_current {
                    questions.push(question(&self.name, questions.len(), fact, &[id.as_str()], category, after));
                }
            }
        }
        // The shortest conversations plant few facts.
        while questions.len() < 3 {
            let Planted { fact, id, category, .. } = &self.planted[0];
            questions.push(question(&self.name, questions.len(), fact, &[id.as_str()], category, None));
        }
        Conversation { name: self.name, messages: self.messages, questions }
    }

    fn say(&mut self, role: &str, content: Value) -> String {
        let id = format!("{}-m{}", self.name, self.messages.len());
        self.messages.push(json!({"id": id, "role": role, "content": content}));
        id
    }

    fn answer(&mut self, chance: &mut Chance, chars: usize) {
        let text = self.chatter(chance, chars);
        let id = self.say("assistant", json!(text));
        self.ends.push(id);
    }

    fn plant(&mut self, fact: Fact, id: String, category: &'static str) {
        self.planted.push(Planted { fact, id, category, turn: self.ends.len() });
    }

    /// A new fact, or another value of an old one.
    fn fact(&self, chance: &mut Chance) -> (Fact, &'static str) {
        if !self.planted.is_empty() && chance.one_in(5) {
            let old = &self.planted[chance.between(0..=self.planted.len() - 1)].fact;
            return (old.changed(chance), "changed-later");
        }
        (self.new_fact(chance), "said-once")
    }

    fn new_fact(&self, chance: &mut Chance) -> Fact {
        Fact::new(chance, self.language, self.planted.len())
    }

    /// So many characters of nothing in particular, or a few more.
    fn chatter(&self, chance: &mut Chance, chars: usize) -> String {
        let (sentences, stop): (&[&str], _) = match self.language {
            Language::Chinese => (&CHINESE, "。"),
            Language::English => (&ENGLISH, ". "),
        };
        let mut text = String::new();
        let mut length = 0;
        while length < chars {
            let sentence = chance.pick(sentences);
            text.push_str(sentence);
            text.push_str(stop);
            length += sentence.chars().count() + 1;
        }
        text.trim_end().to_owned()
    }
}

/// What a program prints, so many characters or a few more.
fn log(chance: &mut Chance, chars: usize) -> String {
    let mut text = String::new();
    while text.len() < chars {
        text.push_str(chance.pick(&LOG));
        text.push('\n');
    }
    text.trim_end().to_owned()
}
