//! The help of the command line in the gateway's language. English is in the doc comments of the arguments; any other
//! language is in a catalogue, `messages/help/*.ftl`: a message for each command, with an attribute for each of its
//! arguments. What all commands share is in the message of the program.

use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory};
use fluent_bundle::{FluentBundle, FluentResource};
use pmk_core::Language;
use pmk_system::home;
use unic_langid::LanguageIdentifier;

use super::Arguments;
use crate::{config, embedded, language};

const CHINESE: &str = include_str!("../messages/help/zh-TW.ftl");

/// The headings of lists, in place of clap's own.
pub(super) const HEADINGS: [&str; 3] = ["指令", "參數", "選項"];

/// Returns the command line in this language.
pub(super) fn command_line(language: Language) -> Command {
    read_in(Arguments::command(), language)
}

/// The same without the commands that clap adds to show help, each of which would be a page of the manual.
pub(super) fn manual(language: Language) -> Command {
    read_in(without_help(Arguments::command()), language)
}

fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn read_in(command: Command, language: Language) -> Command {
    let policies: Vec<&str> = embedded::known().collect();
    let policies = policies.join(language.pick(", ", "、"));
    let mut command = naming(command, &format!("{}{policies}", language.pick("Built-in policies: ", "內建的策略：")));
    match language {
        Language::English => command,
        Language::TraditionalChinese => {
            // Builds the parts that clap adds by itself, so that they are translated, too.
            command.build();
            let catalogue = Catalogue::open(CHINESE);
            in_chinese(command, &catalogue, &[])
        }
    }
}

/// Names the embedded policies below the help of every command that is about policies or takes some.
fn naming(command: Command, policies: &str) -> Command {
    let takes_some = |argument: &Arg| {
        argument.get_value_names().is_some_and(|names| names.iter().any(|name| name.as_str() == "POLICY"))
    };
    let is_named = command.get_name() == "policy" || command.get_arguments().any(takes_some);
    let command = command.mut_subcommands(|inner| naming(inner, policies));
    if is_named { command.after_help(policies.to_owned()) } else { command }
}

/// Determines the language of the home that the arguments name, before they are parsed. If its gateway.json does not
/// tell, because it is not JSON for example, the language is that of the environment.
pub(super) fn language(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Language {
    let mut arguments = arguments.into_iter();
    let mut named: Option<PathBuf> = None;
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--home") => named = arguments.next().map(PathBuf::from),
            Some(word) => named = word.strip_prefix("--home=").map(PathBuf::from).or(named),
            None => {}
        }
    }
    let of_home = home::resolve(named.as_deref()).and_then(|home| config::language(&home));
    of_home.unwrap_or_else(|_| language::of_environment())
}

/// Texts by the name of their command and argument.
struct Catalogue(FluentBundle<FluentResource>);

impl Catalogue {
    fn open(texts: &str) -> Catalogue {
        let tag: LanguageIdentifier = Language::TraditionalChinese.tag().parse().expect("our own tags are valid");
        let resource = FluentResource::try_new(texts.to_owned());
        let resource = resource.unwrap_or_else(|(_, errors)| panic!("the catalogue is tested: {errors:?}"));
        let mut bundle = FluentBundle::new(vec![tag]);
        bundle.add_resource(resource).expect("no command is in the catalogue twice: tested");
        Catalogue(bundle)
    }

    /// Returns the description of a command.
    fn about(&self, command: &str) -> Option<String> {
        let pattern = self.0.get_message(command)?.value()?;
        Some(self.0.format_pattern(pattern, None, &mut vec![]).into_owned())
    }

    /// Returns the description of an argument.
    fn argument(&self, command: &str, argument: &str) -> Option<String> {
        let pattern = self.0.get_message(command)?.get_attribute(argument)?.value();
        Some(self.0.format_pattern(pattern, None, &mut vec![]).into_owned())
    }
}

/// The name of a command in the catalogue.
fn key(path: &[&str]) -> String {
    if path.is_empty() { PROGRAM.to_owned() } else { path.join("-") }
}

const PROGRAM: &str = "pmk-host";
/// The command that clap adds to every command with subcommands.
const HELP: &str = "help";

fn in_chinese(command: Command, catalogue: &Catalogue, path: &[&str]) -> Command {
    let is_help = command.get_name() == HELP;
    let about = if is_help { catalogue.about(HELP) } else { catalogue.about(&key(path)) };
    let [commands, ..] = HEADINGS;
    let mut command = command.subcommand_help_heading(commands).subcommand_value_name(commands);
    let usage = usage(&mut command);
    command = command.help_template(format!("{{about-with-newline}}\n用法：{usage}\n\n{{all-args}}{{after-help}}"));
    if let Some(about) = about {
        command = command.about(about.clone());
        if command.get_long_about().is_some() {
            command = command.long_about(about);
        }
    }
    let of_command = if is_help { HELP.to_owned() } else { key(path) };
    command = command.mut_args(|argument| argument_in_chinese(argument, catalogue, &of_command));
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        // The subcommands of `help` are the commands beside it.
        let is_deeper = !is_help && name != HELP;
        let deeper = [path, &[name.as_str()]].concat();
        let path = if is_deeper || is_help { &deeper[..] } else { path };
        command = command.mut_subcommand(&name, |command| in_chinese(command, catalogue, path));
    }
    command
}

/// Returns the usage line, with clap's word for options translated.
fn usage(command: &mut Command) -> String {
    let usage = command.render_usage().to_string();
    usage.strip_prefix("Usage: ").unwrap_or(&usage).replace("[OPTIONS]", "[選項]")
}

fn argument_in_chinese(argument: Arg, catalogue: &Catalogue, command: &str) -> Arg {
    let id = argument.get_id().as_str();
    let said = catalogue.argument(command, id).or_else(|| catalogue.argument(PROGRAM, id));
    let [_, positionals, options] = HEADINGS;
    let heading = if argument.is_positional() { positionals } else { options };
    let mut argument = argument.help_heading(heading);
    let Some(mut said) = said else { return argument };
    let takes_values = argument.get_action().takes_values();
    let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_values && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        said.push_str(&format!("［預設：{}］", defaults.join(" ")));
    }
    let possible: Vec<String> =
        argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    if takes_values && !possible.is_empty() && !argument.is_hide_possible_values_set() {
        said.push_str(&format!("［可用的值：{}］", possible.join("、")));
    }
    argument = argument.hide_default_value(true).hide_possible_values(true).help(said.clone());
    if argument.get_long_help().is_some() { argument.long_help(said) } else { argument }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::messages::tests::foreign_words;

    /// Collects the commands and arguments by their names in the catalogue, with their texts in this language.
    fn texts(command: &Command, path: &[&str], found: &mut BTreeMap<String, String>) {
        let said = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string).unwrap_or_default();
        let key = if command.get_name() == HELP { HELP.to_owned() } else { key(path) };
        found.insert(key.clone(), said(command.get_about()));
        for argument in command.get_arguments() {
            // `compare` has its own `--json`.
            let is_everywhere = argument.is_global_set() || matches!(argument.get_id().as_str(), "help" | "version");
            let of = if is_everywhere { PROGRAM } else { &key };
            found.insert(format!("{of}.{}", argument.get_id()), said(argument.get_help()));
        }
        if command.get_name() != HELP {
            for command in command.get_subcommands() {
                texts(command, &[path, &[command.get_name()]].concat(), found);
            }
        }
    }

    fn all_texts(language: Language) -> BTreeMap<String, String> {
        let mut command = command_line(language);
        command.build();
        let mut found = BTreeMap::new();
        texts(&command, &[], &mut found);
        found
    }

    #[test]
    fn every_command_and_argument_has_its_chinese_and_the_catalogue_nothing_else() {
        let (english, chinese) = (all_texts(Language::English), all_texts(Language::TraditionalChinese));
        assert!(english.len() > 100 && english.keys().eq(chinese.keys()));
        let is_chinese = |text: &String| text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
        let missing: Vec<_> =
            chinese.iter().filter(|(_, text)| !is_chinese(text) && !text.starts_with("tech、")).collect();
        assert!(missing.is_empty(), "{missing:#?}");
        let foreign: Vec<_> = english.values().filter(|text| is_chinese(text)).collect();
        assert!(foreign.is_empty(), "{foreign:#?}");
        let foreign: Vec<String> = chinese.values().flat_map(|text| foreign_words(text)).collect();
        assert_eq!(foreign, Vec::<String>::new());
        let mut command = String::new();
        let named = CHINESE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (name, _) = line.split_once(" = ")?;
            Some(match name.strip_prefix("    .") {
                Some(argument) => format!("{command}.{argument}"),
                None => {
                    command = name.to_owned();
                    command.clone()
                }
            })
        });
        let orphans: Vec<String> = named.filter(|name| !english.contains_key(name)).collect();
        assert!(orphans.is_empty(), "{orphans:?}");
    }

    /// Regression: it said that some are built in, and not which.
    #[test]
    fn the_help_did_not_name_the_policies_that_come_along() {
        for language in [Language::English, Language::TraditionalChinese] {
            let command = command_line(language);
            for path in [&["run"][..], &["doctor"], &["plan"], &["compare"], &["policy"], &["policy", "use"]] {
                let named = path.iter().fold(&command, |within, name| within.find_subcommand(name).expect("a command"));
                let below = named.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(embedded::known().all(|policy| below.contains(policy)), "{path:?}: {below}");
            }
            assert!(command.get_after_help().is_none());
        }
    }

    #[test]
    fn the_manual_has_the_same_pages_in_every_language() {
        fn pages(command: &Command, path: &str, found: &mut Vec<String>) {
            found.push(format!("{path} {}", command.get_name()));
            command.get_subcommands().for_each(|inner| pages(inner, &format!("{path} {}", command.get_name()), found));
        }
        let [english, chinese] = [Language::English, Language::TraditionalChinese].map(|language| {
            let mut command = manual(language);
            command.build();
            let mut found = vec![];
            pages(&command, "", &mut found);
            found
        });
        assert!(english.len() > 50 && english.iter().all(|page| !page.ends_with(" help")), "{english:?}");
        assert_eq!(english, chinese);
    }

    #[test]
    fn the_home_is_found_before_the_arguments_are_read() {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join("gateway.json"), r#"{"version":1,"language":"zh-TW"}"#).expect("a file");
        let home = home.path().display().to_string();
        for arguments in [vec!["--home".to_owned(), home.clone()], vec!["run".to_owned(), format!("--home={home}")]] {
            assert_eq!(language(arguments.iter().map(Into::into)), Language::TraditionalChinese, "{arguments:?}");
        }
    }

    /// Regression: every command spoke another language, that of the environment.
    #[test]
    fn one_wrong_key_elsewhere_in_the_file_changed_the_language() {
        let home = tempfile::tempdir().expect("a folder");
        let arguments = ["--home".to_owned(), home.path().display().to_string()];
        for (tag, wrong) in [("zh-TW", r#""historyTurns":"x""#), ("zh-TW", r#""policy":7"#), ("en", r#""queue":[]"#)] {
            let file = format!(r#"{{"version":1,"language":"{tag}",{wrong}}}"#);
            std::fs::write(home.path().join("gateway.json"), &file).expect("a file");
            assert_eq!(language(arguments.iter().map(Into::into)).tag(), tag, "{file}");
        }
    }
}
