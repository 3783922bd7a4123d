//! The same two directives as native tools.

use pmk_core::{Language, text};
use pmk_models::Tool;
use serde_json::{Value, json};

use super::{AvailableDirectives, Directive, Kind};

/// A tool call that cannot be carried out; the model is [told](crate::messages::Messages::bad_call) in its language.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCall {
    #[error("there is no tool `{0}`")]
    UnknownTool(String),
    #[error("`{tool}` needs `{key}`, a text that is not empty")]
    MissingInput { tool: &'static str, key: &'static str },
}

impl Kind {
    /// Returns the tool's name; not every provider accepts hyphens.
    pub const fn tool(self) -> &'static str {
        match self {
            Kind::MraAsk => "mra_ask",
            Kind::Escalate => "escalate",
        }
    }
}

/// Returns the available tools, described in that language. The order is always the same, so that a provider's prompt
/// cache stays valid.
pub fn definitions(offer: AvailableDirectives, language: Language) -> Vec<Tool> {
    let offered = Kind::ALL.into_iter().zip(all(language)).filter(|(kind, _)| offer.has(*kind));
    offered.map(|(_, tool)| tool).collect()
}

fn all(language: Language) -> [Tool; 2] {
    let text = |english, chinese| json!({"type": "string", "description": language.pick(english, chinese)});
    [
        Tool {
            name: Kind::MraAsk.tool().into(),
            description: language
                .pick(
                    "Search the source code of one repository and get a written answer. Use it when the knowledge base \
                     does not go into enough detail: an implementation, a scope, a rule, the exact columns. Takes up to a \
                     few minutes.",
                    "查一個儲存庫的程式碼，得到一段文字的回答。知識庫的摘要不夠細時使用：某段實作、scope、權限規則、確切的欄位清單。\
                     最多要幾分鐘。",
                )
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "repo": text("The repository's name as the knowledge base spells it", "儲存庫名稱，與知識庫中的寫法相同"),
                    "question": text("One precise question that can be answered from the code", "一個能從程式碼回答的具體問題"),
                },
                "required": ["repo", "question"],
            }),
        },
        Tool {
            name: Kind::Escalate.tool().into(),
            description: language
                .pick(
                    "Ask the responsible people; their answer comes later, not in this turn. Use it when nothing else can \
                     tell: the state of a live system, a business decision, an unwritten rule.",
                    "請負責的人回答；答案稍後才到，不在這一輪。其他方法都不會有答案時使用：線上系統的現況、商業決策、沒有寫下來的規則。",
                )
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "repo": text("The repository it is about, if it is about one", "相關的儲存庫，沒有就省略"),
                    "question": text(
                        "The question, understandable without the conversation, at most 2,000 characters",
                        "不看對話也能理解的完整問題，最多 2,000 個字元",
                    ),
                    "reason": text("Why nothing else has the answer", "為什麼其他方法都回答不了"),
                },
                "required": ["question", "reason"],
            }),
        },
    ]
}

/// Parses a tool call of the model. A missing reason is tolerated; only the question is essential.
///
/// # Errors
/// [`BadCall`] says what is wrong, for the tool result.
pub fn read_call(name: &str, input: &Value) -> Result<Directive, BadCall> {
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| kind.tool() == name)
        .ok_or_else(|| BadCall::UnknownTool(text::shortened(name, 64).into_owned()))?;
    Directive::from_fields(kind, |key| input.get(key).and_then(Value::as_str).map(str::to_owned))
        .map_err(|key| BadCall::MissingInput { tool: kind.tool(), key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_become_directives() {
        let read = read_call("mra_ask", &json!({"repo": " erp", "question": "where?", "more": 1}));
        assert_eq!(read, Ok(Directive::MraAsk { repo: "erp".into(), question: "where?".into() }));
        let read = read_call("escalate", &json!({"question": "who?", "repo": null}));
        assert_eq!(read, Ok(Directive::Escalate { repo: None, question: "who?".into(), reason: None }));
    }

    #[test]
    fn bad_calls_say_what_is_wrong() {
        let error = |name, input: Value| read_call(name, &input).expect_err("a bad call").to_string();
        assert_eq!(error("bash", json!({})), "there is no tool `bash`");
        assert_eq!(error("mra_ask", json!({"repo": 7})), "`mra_ask` needs `repo`, a text that is not empty");
        assert_eq!(error("escalate", json!("x")), "`escalate` needs `question`, a text that is not empty");
    }

    #[test]
    fn only_what_can_be_carried_out_is_defined() {
        for offer in AvailableDirectives::EACH {
            let names: Vec<String> = definitions(offer, Language::English).into_iter().map(|tool| tool.name).collect();
            assert_eq!(
                (names.iter().any(|name| name == "mra_ask"), names.iter().any(|name| name == "escalate")),
                (offer.mra, offer.people)
            );
            assert_eq!(AvailableDirectives::EACH[offer.number()], offer);
        }
    }

    #[test]
    fn what_the_schema_requires_is_enough() {
        for definition in definitions(AvailableDirectives::ALL, Language::English) {
            let required = definition.input_schema["required"].as_array().expect("a list").clone();
            let input = required.iter().map(|key| (key.as_str().expect("a name").to_owned(), json!("x"))).collect();
            assert!(read_call(&definition.name, &Value::Object(input)).is_ok(), "{}", definition.name);
        }
    }
}
