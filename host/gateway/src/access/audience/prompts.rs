//! The system prompts: built in, or written by the operator.
//!
//! A prompt consists of a text for the audience and the toolbox, which tells the model what the gateway can do for it.
//! The operator may replace the first part by `HOME/prompts/AUDIENCE.md`; the toolbox is always the built-in one,
//! because the gateway's parser and the toolbox must agree. It is inserted where the file has `{{toolbox}}`, otherwise
//! at the end.

use std::{
    io,
    path::{Path, PathBuf},
};

use pmk_core::Language;
use pmk_system::files::{self, FileReadError};
use thiserror::Error;

use super::Audience;
use crate::directive::AvailableDirectives;

/// The largest prompt file that is read, in bytes. The prompt is part of every request.
pub const MAX_PROMPT_BYTES: u64 = 64 << 10;

const PLACEHOLDER: &str = "{{toolbox}}";

/// How the model calls the tools of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolCallFormat {
    /// By fenced directives in its answer.
    Fenced,
    /// By the provider's tool calls.
    Native,
}

impl ToolCallFormat {
    /// Returns the part of a system prompt that explains the available directives; empty if there are none.
    pub fn text(self, offer: AvailableDirectives, language: Language) -> String {
        let text = match (self, language) {
            (ToolCallFormat::Fenced, Language::TraditionalChinese) => include_str!("prompts/toolbox-fenced.zh-TW.md"),
            (ToolCallFormat::Fenced, Language::English) => include_str!("prompts/toolbox-fenced.en.md"),
            (ToolCallFormat::Native, Language::TraditionalChinese) => include_str!("prompts/toolbox-native.zh-TW.md"),
            (ToolCallFormat::Native, Language::English) => include_str!("prompts/toolbox-native.en.md"),
        };
        if offer.is_any() { offered(text, offer) } else { String::new() }
    }
}

/// Keeps the lines about available directives, and those that depend on none.
fn offered(text: &str, offer: AvailableDirectives) -> String {
    let mut is_offered = true;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        match line {
            "{{mra}}" => is_offered = offer.mra,
            "{{people}}" => is_offered = offer.people,
            "{{all}}" => is_offered = true,
            line if is_offered => kept.extend([line, "\n"]),
            _ => {}
        }
    }
    kept.trim().to_owned()
}

impl Audience {
    /// The built-in text for this audience, without the toolbox. It says how to cite code only if `mra` is available.
    fn built_in(self, offer: AvailableDirectives, language: Language) -> String {
        let text = match self {
            Audience::Tech => language.pick(include_str!("prompts/tech.en.md"), include_str!("prompts/tech.zh-TW.md")),
            Audience::Pm => language.pick(include_str!("prompts/pm.en.md"), include_str!("prompts/pm.zh-TW.md")),
            Audience::Biz => language.pick(include_str!("prompts/biz.en.md"), include_str!("prompts/biz.zh-TW.md")),
            Audience::Exec => language.pick(include_str!("prompts/exec.en.md"), include_str!("prompts/exec.zh-TW.md")),
        };
        offered(text, offer)
    }
}

/// The prompts of one run of the gateway.
#[derive(Clone, Debug, Default)]
pub struct Prompts {
    overrides: [Option<String>; Audience::ALL.len()],
    /// The language of the built-in texts; the model answers in the language of the question.
    language: Language,
}

/// A prompt file that is not used.
#[derive(Debug, Error)]
pub enum PromptProblem {
    #[error("cannot read `{}`, so the built-in prompt is used: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("`{}` is empty, so the built-in prompt is used", path.display())]
    Empty { path: PathBuf },
    #[error("`{}` has {bytes} bytes, more than the limit of {MAX_PROMPT_BYTES}, so the built-in prompt is used", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("`{}` is not UTF-8 text, so the built-in prompt is used", path.display())]
    NotText { path: PathBuf },
}

impl Prompts {
    /// Reads the operator's prompts, `HOME/prompts/{tech,pm,biz,exec}.md`, where they exist. One that cannot be used is
    /// reported and does not keep the gateway from starting.
    pub fn load(home: &Path) -> (Prompts, Vec<PromptProblem>) {
        let mut prompts = Prompts::default();
        let mut problems = Vec::new();
        for audience in Audience::ALL {
            match read(home.join("prompts").join(format!("{audience}.md"))) {
                Ok(text) => prompts.overrides[audience as usize] = text,
                Err(problem) => problems.push(problem),
            }
        }
        (prompts, problems)
    }

    /// Returns the audiences that the operator has written a prompt for.
    pub fn own(&self) -> impl Iterator<Item = Audience> {
        Audience::ALL.into_iter().filter(|audience| self.overrides[*audience as usize].is_some())
    }

    /// Sets the language of the built-in texts.
    #[must_use]
    pub fn speaking(self, language: Language) -> Prompts {
        Prompts { language, ..self }
    }

    /// Returns the language of the built-in texts.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Returns the system prompt for an audience. It contains the toolbox of the available directives exactly once.
    pub fn system(&self, audience: Audience, toolbox: ToolCallFormat, offer: AvailableDirectives) -> String {
        let text = match &self.overrides[audience as usize] {
            Some(text) => text.trim().to_owned(),
            None => audience.built_in(offer, self.language),
        };
        let toolbox = toolbox.text(offer, self.language);
        match text.split_once(PLACEHOLDER) {
            Some((before, after)) => format!("{before}{toolbox}{}", after.replace(PLACEHOLDER, "")),
            None => format!("{text}\n\n{toolbox}").trim_end().to_owned(),
        }
    }
}

fn read(path: PathBuf) -> Result<Option<String>, PromptProblem> {
    let bytes = match files::read(&path, MAX_PROMPT_BYTES) {
        Ok(bytes) => bytes,
        Err(FileReadError::TooLarge { bytes, .. }) => return Err(PromptProblem::TooLarge { path, bytes }),
        Err(FileReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(PromptProblem::Unreadable { path, source: error.into() }),
    };
    let Ok(text) = String::from_utf8(bytes) else { return Err(PromptProblem::NotText { path }) };
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err(PromptProblem::Empty { path });
    }
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        directive::{self, Directive},
        messages::tests::foreign_words,
    };

    const TOOLBOXES: [ToolCallFormat; 2] = [ToolCallFormat::Fenced, ToolCallFormat::Native];
    const LANGUAGES: [Language; 2] = [Language::TraditionalChinese, Language::English];

    fn home(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let home = tempfile::tempdir().expect("a directory");
        fs::create_dir(home.path().join("prompts")).expect("a folder");
        for (name, content) in files {
            fs::write(home.path().join("prompts").join(name), content).expect("a file");
        }
        home
    }

    #[test]
    fn every_prompt_carries_its_toolbox_once() {
        let overridden: Vec<_> = Audience::ALL.map(|audience| format!("{audience}.md")).into();
        let plain: Vec<_> = overridden.iter().map(|name| (name.as_str(), b"Speak like a pirate.".as_slice())).collect();
        let placed: Vec<_> =
            overridden.iter().map(|name| (name.as_str(), b"A {{toolbox}} B {{toolbox}} C".as_slice())).collect();
        for files in [&[] as &[_], &plain, &placed] {
            let home = home(files);
            let (prompts, problems) = Prompts::load(home.path());
            assert!(problems.is_empty(), "{problems:?}");
            for audience in Audience::ALL {
                for toolbox in TOOLBOXES {
                    for language in LANGUAGES {
                        let system =
                            prompts.clone().speaking(language).system(audience, toolbox, AvailableDirectives::ALL);
                        let text = toolbox.text(AvailableDirectives::ALL, language);
                        assert_eq!(system.matches(&text).count(), 1, "{audience}: {system}");
                        assert!(!system.contains("{{"));
                    }
                }
            }
        }
    }

    #[test]
    fn no_prompt_has_a_sentence_of_the_other_language() {
        let is_chinese = |c: char| ('\u{3000}'..='\u{9fff}').contains(&c) || ('\u{ff00}'..='\u{ffef}').contains(&c);
        for (audience, toolbox) in Audience::ALL.into_iter().flat_map(|audience| TOOLBOXES.map(|one| (audience, one))) {
            let prompt =
                |language| Prompts::default().speaking(language).system(audience, toolbox, AvailableDirectives::ALL);
            let (english, chinese) = (prompt(Language::English), prompt(Language::TraditionalChinese));
            assert!(!english.contains(is_chinese), "{english}");
            assert!(chinese.contains(is_chinese));
            assert_eq!(foreign_words(&chinese), Vec::<String>::new(), "{audience}");
        }
    }

    #[test]
    fn an_override_replaces_one_audience() {
        let home = home(&[("pm.md", "\u{feff}只說重點。\n".as_bytes()), ("biz.md", b"A {{toolbox}} B")]);
        let (prompts, _) = Prompts::load(home.path());
        assert!(
            prompts
                .system(Audience::Pm, ToolCallFormat::Native, AvailableDirectives::ALL)
                .starts_with("只說重點。\n\n")
        );
        let biz = prompts.system(Audience::Biz, ToolCallFormat::Native, AvailableDirectives::ALL);
        assert!(biz.starts_with("A #") && biz.ends_with(" B"), "{biz}");
        assert!(
            prompts
                .system(Audience::Tech, ToolCallFormat::Native, AvailableDirectives::ALL)
                .starts_with(&Audience::Tech.built_in(AvailableDirectives::ALL, Language::English))
        );
    }

    #[test]
    fn an_override_that_cannot_be_used_is_told() {
        let large = vec![b'x'; MAX_PROMPT_BYTES as usize + 1];
        let home = home(&[("tech.md", b" \n"), ("pm.md", b"\xff"), ("biz.md", &large)]);
        fs::create_dir(home.path().join("prompts/exec.md")).expect("a folder");
        let (prompts, problems) = Prompts::load(home.path());
        assert!(matches!(
            problems[..],
            [
                PromptProblem::Empty { .. },
                PromptProblem::NotText { .. },
                PromptProblem::TooLarge { .. },
                PromptProblem::Unreadable { .. }
            ]
        ));
        for audience in Audience::ALL {
            assert!(
                prompts
                    .system(audience, ToolCallFormat::Fenced, AvailableDirectives::ALL)
                    .starts_with(&audience.built_in(AvailableDirectives::ALL, Language::English))
            );
        }
    }

    #[test]
    fn a_home_without_prompts_has_ours() {
        let home = tempfile::tempdir().expect("a directory");
        assert!(Prompts::load(home.path()).1.is_empty());
    }

    #[test]
    fn the_tones_differ_as_seed_003_says() {
        for (audience, words) in
            [(Audience::Tech, "API"), (Audience::Pm, "PM"), (Audience::Biz, "IT"), (Audience::Exec, "影響（含風險）")]
        {
            let text = audience.built_in(AvailableDirectives::ALL, Language::TraditionalChinese);
            assert!(text.contains(words), "{audience}");
        }
    }

    #[test]
    fn the_fenced_toolbox_shows_what_the_parser_reads() {
        for (language, offer) in LANGUAGES.into_iter().flat_map(|it| AvailableDirectives::EACH.map(|offer| (it, offer)))
        {
            let text = ToolCallFormat::Fenced.text(offer, language);
            let mut rest = text.as_str();
            let mut kinds = Vec::new();
            while let Some(at) = rest.find("\n```") {
                let block = &rest[at + 1..];
                let end = block[3..].find("```").expect("an end") + 6;
                kinds.extend(directive::parse(&block[..end]).directive.as_ref().map(Directive::kind));
                rest = &block[end..];
            }
            assert_eq!(kinds, offer.kinds().collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn a_toolbox_speaks_of_what_is_offered_and_of_nothing_else() {
        for (language, offer) in LANGUAGES.into_iter().flat_map(|it| AvailableDirectives::EACH.map(|offer| (it, offer)))
        {
            let native = ToolCallFormat::Native.text(offer, language);
            for (tool, is_offered) in [("mra_ask", offer.mra), ("escalate", offer.people)] {
                assert_eq!(native.contains(&format!("`{tool}`")), is_offered, "{native}");
            }
            assert!(!native.contains("```") && native.is_empty() != offer.is_any());
            let fenced = ToolCallFormat::Fenced.text(offer, language);
            for (tag, is_offered) in [("mra-ask", offer.mra), ("escalate", offer.people)] {
                assert_eq!(fenced.contains(tag), is_offered, "{fenced}");
            }
        }
    }

    #[test]
    fn of_looking_into_code_is_spoken_only_where_there_is_some() {
        let without = AvailableDirectives { mra: false, people: true };
        for (language, words) in [
            (Language::English, ["API endpoints", "knowledge base"]),
            (Language::TraditionalChinese, ["API 端點", "知識庫"]),
        ] {
            for audience in [Audience::Tech, Audience::Pm] {
                let prompts = Prompts::default().speaking(language);
                let said = |offer| prompts.system(audience, ToolCallFormat::Native, offer);
                assert!(!words.iter().any(|word| said(without).contains(word)), "{audience}: {}", said(without));
                assert!(words.iter().any(|word| said(AvailableDirectives::ALL).contains(word)), "{audience}");
            }
        }
    }

    #[test]
    fn exec_and_biz_are_shown_no_code_and_documents_are_the_ground_whatever_is_available() {
        for (language, ban, ground) in [
            (Language::English, "o code, ", "are the ground for facts"),
            (Language::TraditionalChinese, "程式碼、", "事實根據"),
        ] {
            let prompts = Prompts::default().speaking(language);
            for offer in AvailableDirectives::EACH {
                for audience in Audience::ALL {
                    let said = prompts.system(audience, ToolCallFormat::Native, offer);
                    assert!(said.contains(ground), "{audience}: {said}");
                    let is_banned = matches!(audience, Audience::Exec | Audience::Biz);
                    assert_eq!(said.contains(ban), is_banned, "{audience}: {said}");
                }
            }
        }
    }

    #[test]
    fn a_prompt_without_anything_to_offer_has_no_toolbox() {
        for toolbox in TOOLBOXES {
            let system = Prompts::default().system(Audience::Tech, toolbox, AvailableDirectives::EACH[0]);
            assert_eq!(system, Audience::Tech.built_in(AvailableDirectives::EACH[0], Language::English));
        }
    }
}
