//! The same two abilities as native tools.

use pmk_models::Tool;
use serde_json::{Value, json};

use super::{Directive, Kind, Offer};
/// A tool call that cannot be carried out; the message is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCall {
    #[error("there is no tool `{0}`; there are `mra_ask` and `escalate`")]
    UnknownTool(String),
    #[error("`{tool}` needs `{key}`, a text that is not empty")]
    MissingInput { tool: &'static str, key: &'static str },
}

impl Kind {
    /// The tool's name; providers take no hyphen everywhere.
    pub const fn tool(self) -> &'static str {
        match self {
            Kind::MraAsk => "mra_ask",
            Kind::Escalate => "escalate",
        }
    }
}

/// The tools that can be carried out, always in this order, so that a provider's cache of the prompt holds.
pub fn definitions(offer: Offer) -> Vec<Tool> {
    let offered = Kind::ALL.into_iter().zip(all()).filter(|(kind, _)| offer.has(*kind));
    offered.map(|(_, tool)| tool).collect()
}

fn all() -> [Tool; 2] {
    let text = |description: &str| json!({"type": "string", "description": description});
    [
        Tool {
            name: Kind::MraAsk.tool().into(),
            description: "Search the source code of one repository and get a written answer. Use it when the \
                          knowledge base does not go into enough detail: an implementation, a scope, a rule, the \
                          exact columns. Takes up to a few minutes."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "repo": text("The repository's name as the knowledge base spells it"),
                    "question": text("One precise question that can be answered from the code"),
                },
                "required": ["repo", "question"],
            }),
        },
        Tool {
            name: Kind::Escalate.tool().into(),
            description: "Ask the responsible people; their answer comes later, not in this turn. Use it when \
                          nothing else can tell: the state of a live system, a business decision, an unwritten \
                          rule."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "repo": text("The repository it is about, if it is about one"),
                    "question": text("The question, understandable without the conversation, at most 2,000 characters"),
                    "reason": text("Why nothing else has the answer"),
                },
                "required": ["question", "reason"],
            }),
        },
    ]
}

/// Reads a call that the model made. A missing reason is forgiven; the question is what counts.
///
/// # Errors
/// [`BadCall`] names what is wrong, for the tool result.
pub fn read_call(name: &str, input: &Value) -> Result<Directive, BadCall> {
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| kind.tool() == name)
        .ok_or_else(|| BadCall::UnknownTool(name.chars().take(64).collect()))?;
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
        assert_eq!(error("bash", json!({})), "there is no tool `bash`; there are `mra_ask` and `escalate`");
        assert_eq!(error("mra_ask", json!({"repo": 7})), "`mra_ask` needs `repo`, a text that is not empty");
        assert_eq!(error("escalate", json!("x")), "`escalate` needs `question`, a text that is not empty");
    }

    #[test]
    fn only_what_can_be_carried_out_is_defined() {
        for offer in Offer::EACH {
            let names: Vec<String> = definitions(offer).into_iter().map(|tool| tool.name).collect();
            assert_eq!(
                (names.iter().any(|name| name == "mra_ask"), names.iter().any(|name| name == "escalate")),
                (offer.mra, offer.people)
            );
            assert_eq!(Offer::EACH[offer.number()], offer);
        }
    }

    #[test]
    fn what_the_schema_requires_is_enough() {
        for definition in definitions(Offer::ALL) {
            let required = definition.input_schema["required"].as_array().expect("a list").clone();
            let input = required.iter().map(|key| (key.as_str().expect("a name").to_owned(), json!("x"))).collect();
            assert!(read_call(&definition.name, &Value::Object(input)).is_ok(), "{}", definition.name);
        }
    }
}
