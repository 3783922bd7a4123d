//! `compare`: compares policies on recorded conversations.

use std::{
    fs::{self, FileType},
    io, iter,
    num::NonZeroUsize,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    time::Instant,
};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use pmk_core::Language;
use pmk_models::{
    ModelSpec, Provider,
    sim::{Sim, SimConfig},
    windows,
};
use pmk_policy::{Identity, SetOverride, Stack};
use pmk_system::{
    error::{Failure, OrHint},
    home,
};
use rustix::process::geteuid;

use super::{
    arguments::{Json, between, number, tokens},
    context::Context,
    experiment, logging,
    output::{print, print_json},
    page::Page,
    recorded, table,
    text::printable,
};
use crate::{
    config::{Config, PolicyConfig},
    evaluation::compare::{
        histories::{self, LeftOut, Source},
        prices::Prices,
        questions::Questions,
        replay::{Arm, Setup},
        report::{
            self, Report, Subject, Windows,
            diff::{Diff, most_telling},
        },
        runner::{Comparison, CutOff, Replayed, Results, Watch},
    },
    policies::{Loader, Named},
    store::transfer::TransferError,
};

/// The most problems that are printed individually.
const MAX_TOLD: usize = 20;

/// The most links that are followed, one after the other; Linux follows no more.
const MAX_LINKS: usize = 40;

/// More than any machine has processors for; each takes a thread.
const MOST_JOBS: u64 = 256;

#[derive(Debug, Args)]
pub(super) struct CompareCommand {
    /// Policy: name of a built-in one or path of a component file; repeat to compare others with the first (for layers,
    /// use `--experiment`)
    #[arg(long, value_name = "POLICY", required_unless_present = "experiment")]
    policy: Vec<PathBuf>,

    /// Set a policy setting
    #[arg(long, value_name = "POLICY.NAME=VALUE")]
    set: Vec<SetOverride>,

    /// JSON file as for `experiment start --file`: its arms, each with its own layers and settings, are compared with
    /// its control
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policy", "set"])]
    experiment: Option<PathBuf>,

    /// Directory of conversations, or one file: pmk's tree, full exports, Anthropic's JSON, JSON Lines [default: the
    /// home's, by their receipts]
    #[arg(long, value_name = "FILE|DIR")]
    histories: Option<PathBuf>,

    /// Questions about them, as a JSON list or JSON Lines
    #[arg(long, value_name = "FILE")]
    questions: Option<PathBuf>,

    /// Model's context window in tokens [default: the model's; for a home without `--budget`, from the receipts]
    #[arg(long, value_name = "N", value_parser = tokens, allow_negative_numbers = true)]
    window: Option<u64>,

    /// Hard limit in tokens [default: the window minus answer and system prompt; for a home without `--window`, from
    /// the receipts]
    #[arg(long, value_name = "N", value_parser = tokens, allow_negative_numbers = true)]
    budget: Option<u64>,

    /// Model whose window and prices apply; `sim:factor=F,overhead=N` counts differently from the gateway's estimate
    #[arg(long, value_name = "PROVIDER[:NAME]", default_value = "sim")]
    model: String,

    /// Model prices, as TOML [default: list prices]
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,

    /// Write the whole report as JSON; `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = |path: &str| Ok::<_, String>(json_to(path)))]
    json: Option<Json>,

    /// Write the report as a single HTML page
    #[arg(long, value_name = "FILE", value_parser = page_file)]
    html: Option<PathBuf>,

    /// Conversations to process at once [default: one per processor]
    #[arg(long, value_name = "N", value_parser = between::<usize>(1, MOST_JOBS))]
    jobs: Option<usize>,

    /// Random seed; the same seed gives the same report
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number::<u64>)]
    seed: u64,
}

fn json_to(path: &str) -> Json {
    if path == "-" { Json::Stdout } else { Json::File(path.into()) }
}

fn page_file(path: &str) -> Result<PathBuf, String> {
    match path {
        "-" => Err("specify a file: standard output is for the report".to_owned()),
        path => Ok(path.into()),
    }
}

impl CompareCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        // Failures in decisions are counted; logging thousands of them would not help.
        logging::start(true, context.json, context.language);
        let config = context.config()?;
        let spec: ModelSpec = self.model.parse()?;
        self.files().try_for_each(check_writable)?;
        self.check_different()?;
        let setup = self.setup(&spec, &config)?;
        let questions = self.questions.as_deref().map(Questions::read).transpose()?;
        let prices = Prices::load(self.prices.as_deref())?;
        let arms = self.arms(context, &config.policy)?;
        let (found, problems) = self.sources(context)?;
        let priced_as = spec.name.clone().filter(|_| spec.provider != Provider::Sim);
        let jobs = self.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZeroUsize::get));
        let progress = Progress::over(found.len(), context);
        let start = Instant::now();
        let comparison = Comparison { arms: &arms, setup: &setup, questions: questions.as_ref(), jobs };
        let results = comparison.run(found.clone(), &progress);
        let elapsed = start.elapsed();
        progress.0.finish_and_clear();
        let mut results = results.or_hint("see the lines above for where; use fewer files to see which one it is")?;
        results.problems.splice(0..0, problems.iter().map(ToString::to_string));
        results.left_out += problems.len();
        let (from, hint) = match &self.histories {
            Some(folder) => {
                (folder, "each file is a JSON list of messages, an object with `messages`, or one message per line")
            }
            None => (&context.home, "see the lines above for the reason"),
        };
        let cut_off = results.cut_off.first().map(|cut_off| cut_off.hint.clone());
        let left_out_by_cuts = results.cut_off.iter().filter(|cut_off| cut_off.leaves_out).count();
        let hint = cut_off.as_deref().filter(|_| results.left_out == left_out_by_cuts).unwrap_or(hint);
        tell(context, &results, hint);
        if results.conversations.is_empty() {
            return Err(Failure::new(format!("no conversation of `{}` can be replayed", from.display())).hint(hint));
        }
        let subject = Subject {
            model: spec.to_string(),
            windows: match setup.by_receipts {
                true => Windows::by_receipts(results.conversations.len(), results.without_receipts, setup.window),
                false => Windows::Only(setup.window),
            },
            budget: self.budget,
            price: priced_as.as_deref().and_then(|name| prices.of(name)),
            priced_as,
            seed: self.seed,
        };
        let report = Report::new(&arms, subject, results, elapsed);
        if report.decisions() == 0 {
            return Err(Failure::new("no message of these conversations fits, so nothing would ever be sent")
                .hint("use a larger `--window` or `--budget`"));
        }
        // Whatever becomes of the files, the report is printed: it took long to make.
        let page = self.html.as_deref().map_or(Ok(()), |path| {
            let diff = side_by_side(&comparison, found, &report.results.conversations)?;
            write(path, &report::page::html(&report, diff.as_ref(), context.language))
        });
        let document = match &self.json {
            Some(Json::File(path)) => write(path, &format!("{}\n", pmk_system::json::shown_pretty(&report.document()))),
            _ => Ok(()),
        };
        self.publish(&report, context)?;
        page.and(document)
    }

    /// Returns the files that are to be written.
    fn files(&self) -> impl Iterator<Item = &Path> {
        let document = match &self.json {
            Some(Json::File(path)) => Some(path.as_path()),
            _ => None,
        };
        self.html.as_deref().into_iter().chain(document)
    }

    /// Refuses to write both reports to the same file: one would replace the other.
    fn check_different(&self) -> Result<(), Failure> {
        let (Some(page), Some(json)) = (&self.html, &self.json) else { return Ok(()) };
        let is_one = match json {
            Json::File(document) => !is_pipe(page) && place(page) == place(document),
            Json::Stdout => is_stdout(page),
            Json::No => false,
        };
        if is_one {
            return Err(Failure::new(format!("`--html` and `--json` name the same file, `{}`", page.display()))
                .hint("specify two files"));
        }
        Ok(())
    }

    /// Returns the conversations, and the problems of those that cannot be read.
    fn sources(&self, context: &Context) -> Result<(Vec<Source>, Vec<TransferError>), Failure> {
        if let Some(folder) = &self.histories {
            return recorded::of_folder(folder, self.questions.as_deref());
        }
        let (home, kept) = (&context.home, recorded::of_home(context.place()?)?);
        if kept.is_empty() {
            return Err(Failure::new(format!("there are no conversations in `{}`", home.display()))
                .hint("specify a home with conversations, or a folder of recorded ones with `--histories DIR`"));
        }
        Ok((kept, vec![]))
    }

    fn setup(&self, spec: &ModelSpec, config: &Config) -> Result<Setup, Failure> {
        let window = windows::of(&spec.clone().with_window(self.window)).tokens;
        let sim = match (spec.provider, &spec.name) {
            (Provider::Sim, Some(words)) => SimConfig::parse(words).map_err(Failure::new)?,
            _ => SimConfig::default(),
        };
        Ok(Setup {
            window,
            budget: self.budget,
            sim: Sim::new(SimConfig { window, delay_ms: 0, ..sim }),
            history_turns: config.history_turns,
            by_receipts: self.histories.is_none() && self.window.is_none() && self.budget.is_none(),
        })
    }

    /// Loads what is compared, all in one engine: the arms of the experiment, or every policy over the embedded one.
    fn arms(&self, context: &Context, config: &PolicyConfig) -> Result<Vec<Arm>, Failure> {
        if let Some(file) = &self.experiment {
            let arms = experiment::arms(context, config, file)?;
            return Ok(arms.into_iter().map(|(label, stack)| Arm { label, stack }).collect());
        }
        if self.policy.len() < 2 {
            return Err(Failure::new("one policy alone cannot be compared")
                .hint("specify two or more, for example `--policy standard --policy strict`"));
        }
        let loader = Loader::open(&context.home, Named { set: self.set.clone(), ..Named::default() })?;
        let stacks = self
            .policy
            .iter()
            .map(|file| loader.load(config, std::slice::from_ref(file)))
            .collect::<Result<Vec<_>, _>>()?;
        loader.check_settings(config, &stacks)?;
        Ok(labelled(stacks))
    }

    /// Prints the report.
    fn publish(&self, report: &Report, context: &Context) -> Result<(), Failure> {
        match &self.json {
            Some(Json::Stdout) => print_json(&report.document()),
            Some(Json::File(_) | Json::No) | None => print(&page(report, context.language)),
        }
    }
}

/// Labels stacks by the name of the top policy; if names are equal, with the version or the digest, too.
fn labelled(stacks: Vec<Stack>) -> Vec<Arm> {
    let names = |label: &dyn Fn(&Stack) -> String| -> Option<Vec<String>> {
        let names: Vec<String> = stacks.iter().map(label).collect();
        let mut different = names.clone();
        different.sort_unstable();
        different.dedup();
        (different.len() == names.len()).then_some(names)
    };
    fn top(stack: &Stack) -> &Identity {
        stack.top().policy.identity()
    }
    let labels = names(&|stack| top(stack).name.clone())
        .or_else(|| names(&|stack| top(stack).to_string()))
        .or_else(|| names(&|stack| format!("{} {:.8}", top(stack), top(stack).sha256)))
        .unwrap_or_else(|| (1..).zip(&stacks).map(|(number, stack)| format!("{} #{number}", top(stack))).collect());
    labels.into_iter().zip(stacks).map(|(label, stack)| Arm { label, stack }).collect()
}

/// Checks that a file can be written, before the work whose result goes there. What is in it stays; a pipe is left
/// alone, because its reader would take closing it for the end.
fn check_writable(path: &Path) -> Result<(), Failure> {
    check_owner(path)?;
    if is_pipe(path) {
        return Ok(());
    }
    let staged = match path.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => home::stage_private_file(&place(path), b"").map(drop),
    };
    written(path, staged)
}

/// Writes a report. It quotes what people wrote, so it is for the operator alone.
fn write(path: &Path, content: &str) -> Result<(), Failure> {
    check_owner(path)?;
    written(
        path,
        match is_pipe(path) {
            true => fs::write(path, content),
            false => home::replace_private_file(&place(path), content.as_bytes()),
        },
    )
}

/// Refuses a link or a pipe that another user has put there, or where a link of one's own leads: they would read the
/// report, or have another file replaced.
fn check_owner(path: &Path) -> Result<(), Failure> {
    let places = iter::successors(Some(path.to_owned()), |place| behind(place)).take(MAX_LINKS);
    for (links, place) in places.enumerate() {
        // Why there is nothing to be seen is said by whoever writes.
        let Ok(there) = fs::symlink_metadata(&place) else { break };
        // `/dev/stdout` may lead to the terminal of whoever has become this user.
        let is_terminal = links > 0 && there.file_type().is_char_device();
        if !is_terminal && is_foreign(there.file_type(), there.uid(), geteuid().as_raw()) {
            return Err(Failure::new(format!(
                "cannot write `{}`: it is a link or a pipe of another user (uid {})",
                place.display(),
                there.uid()
            ))
            .hint("specify a file of your own"));
        }
    }
    Ok(())
}

/// Returns where a link leads; `None` if it is none.
fn behind(link: &Path) -> Option<PathBuf> {
    let target = fs::read_link(link).ok()?;
    Some(link.parent().unwrap_or(Path::new("")).join(target))
}

/// Whether what is no plain file belongs to somebody who is neither this user nor the administrator.
fn is_foreign(kind: FileType, owner: u32, user: u32) -> bool {
    !kind.is_file() && !kind.is_dir() && owner != user && owner != 0
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Whether a path leads to where standard output goes.
fn is_stdout(path: &Path) -> bool {
    let file = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    file(path).is_some_and(|there| file(Path::new("/dev/stdout")) == Some(there))
}

/// Returns where a file is or will be, by whatever name: a link that leads there stays.
fn place(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Ok(place) = fs::canonicalize(&path) {
            return place;
        }
        // A link may lead to what is not there yet.
        let Some(target) = behind(&path) else {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
            return path.file_name().map_or_else(|| path.clone(), |name| folder.join(name));
        };
        path = target;
    }
    path
}

fn written(path: &Path, outcome: io::Result<()>) -> Result<(), Failure> {
    outcome
        .map_err(|error| format!("cannot write `{}`: {error}", path.display()))
        .or_hint("specify a file in a folder that you can write to")
}

/// Prints what could not be replayed or asked.
fn tell(context: &Context, results: &Results, hint: &str) {
    for problem in results.problems.iter().take(MAX_TOLD) {
        context.warn(problem);
    }
    if let Some(more) = results.problems.len().checked_sub(MAX_TOLD).filter(|&more| more > 0) {
        context.warn(&format!("{more} more of this kind; the JSON report has them all"));
    }
    if results.left_out > 0 && !results.conversations.is_empty() {
        let left_out = Failure::new(results.left_out.to_string()).hint(hint);
        context.warn_of("conversations left out of the comparison", &left_out);
    }
    if results.left_out > 0 || !results.conversations.is_empty() {
        for CutOff { path, hint, .. } in results.cut_off.iter().take(MAX_TOLD) {
            let path = path.display();
            let text = format!("`{path}` ends early, so conversations may be missing from the comparison");
            context.notice(&text, Some(hint));
        }
    }
}

/// Replays the most informative conversation once more.
fn side_by_side(
    comparison: &Comparison<'_>,
    found: Vec<Source>,
    conversations: &[Replayed],
) -> Result<Option<Diff>, TransferError> {
    let Some((place, at)) = most_telling(conversations) else { return Ok(None) };
    let source = found.into_iter().nth(place);
    let conversation = match source.and_then(|source| histories::of_source(source).nth(at)) {
        Some(Ok(conversation)) => conversation,
        Some(Err(left)) => match *left {
            LeftOut::Unread { error, .. } => return Err(error),
            LeftOut::Again { .. } => return Ok(None),
        },
        None => return Ok(None),
    };
    let (names, recording) = conversation.open()?;
    let name = names.into_iter().next().unwrap_or_default();
    Ok(Some(Diff::of(comparison.arms, comparison.setup, name, &recording)))
}

/// The report for a terminal.
fn page(report: &Report, language: Language) -> String {
    let Report { subject, results, .. } = report;
    let turns: usize = results.conversations.iter().map(|replayed| replayed.turns).sum();
    let limit = match (subject.budget, subject.windows) {
        (Some(budget), Windows::Only(window)) => format!("a limit of {budget} tokens in a window of {window}"),
        (_, windows) => windows.phrase(|tokens| tokens.to_string()),
    };
    let (conversations, asked, model, seed) =
        (results.conversations.len(), results.asked, &subject.model, subject.seed);
    let mut page = Page::new(language);
    let conversations = match conversations {
        1 => "1 conversation".to_owned(),
        more => format!("{more} conversations"),
    };
    let turns = match turns {
        1 => "1 turn".to_owned(),
        more => format!("{more} turns"),
    };
    let questions = match asked {
        1 => "1 question".to_owned(),
        more => format!("{more} questions"),
    };
    page.say(&format!("{conversations}, {turns}, {questions}; `{model}` with {limit}, seed {seed}"));
    let told = report.prices(language).into_iter().chain(report.settings(language));
    told.for_each(|told| page.text(&format!("{told}\n")));
    page.text("\n");
    page.text(&table::columns_of_names(&report::table::rows(report, language)));
    page.text("\n");
    report.verdicts(language).iter().for_each(|verdict| page.text(&format!("{verdict}\n")));
    // They name files and quote policies.
    report.faults(language).iter().for_each(|told| page.text(&format!("{}\n", printable(told))));
    page.text("\n");
    let (decisions, seconds) = (report.decisions(), report.elapsed.as_secs_f64());
    page.say(&format!("{decisions} decisions in {seconds:.1} s, {} a minute", report.decisions_a_minute()));
    page.done()
}

/// The progress bar of a terminal.
struct Progress(ProgressBar);

impl Progress {
    fn over(conversations: usize, context: &Context) -> Progress {
        let template = context.translated("{bar:30} {pos} of {len} conversations, {eta} to go");
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Progress(ProgressBar::new(conversations as u64).with_style(style))
    }
}

impl Watch for Progress {
    fn done(&self) {
        self.0.inc(1);
    }

    fn more(&self) {
        self.0.inc_length(1);
    }
}

impl From<crate::evaluation::compare::questions::QuestionsError> for Failure {
    fn from(error: crate::evaluation::compare::questions::QuestionsError) -> Self {
        Failure::new(error)
            .hint("each question is an object with `conversation`, `question` and what `docs/compare.md` lists")
    }
}

impl From<crate::evaluation::compare::prices::PricesError> for Failure {
    fn from(error: crate::evaluation::compare::prices::PricesError) -> Self {
        Failure::new(error).hint("define a model as `[models.\"NAME\"]` with `input`, `cached` and `output`")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{lchown, symlink};

    use pmk_stand_ins::not_run;

    use super::*;

    /// Regression: in a folder like `/tmp`, the report went where the link of another user led, or into their pipe.
    #[test]
    fn a_report_followed_the_link_of_another_user() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, link] = ["report.html", "link.html"].map(|name| folder.path().join(name));
        fs::write(&file, "").expect("a file");
        symlink(&file, &link).expect("a link");
        let kind = |path: &Path| fs::symlink_metadata(path).expect("it is there").file_type();
        for special in [kind(&link), kind(Path::new("/dev/null"))] {
            assert!(is_foreign(special, 1001, 1000));
            assert!(!is_foreign(special, 1000, 1000));
            assert!(!is_foreign(special, 0, 1000), "like `/dev/stdout`");
        }
        // Whether these can be replaced is up to the system.
        assert!(!is_foreign(kind(&file), 1001, 1000) && !is_foreign(kind(folder.path()), 1001, 1000));
        write(&link, "a report").expect("a link of one's own");
        assert_eq!(fs::read_to_string(&file).expect("a file"), "a report");
        check_owner(Path::new("/dev/stdout")).expect("it is the administrator's");
    }

    /// Regression: only the first of several links was looked at.
    #[test]
    fn a_report_followed_the_link_of_another_user_if_a_link_of_ones_own_led_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let [own, theirs] = ["own.html", "theirs.html"].map(|name| folder.path().join(name));
        symlink("theirs.html", &own).expect("a link");
        symlink("report.html", &theirs).expect("a link");
        check_writable(&own).expect("both are one's own");
        if !geteuid().is_root() {
            not_run::say("giving a link to another user needs root");
            return;
        }
        lchown(&theirs, Some(65_534), None).expect("root may");
        let refused = check_writable(&own).expect_err("it leads to the link of another user").to_string();
        let expected = format!("cannot write `{}`: it is a link or a pipe of another user", theirs.display());
        assert!(refused.starts_with(&expected), "{refused}");
    }

    /// Regression: such a link was replaced by the report.
    #[test]
    fn a_link_to_a_report_that_is_not_there_yet_was_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, link] = ["report.html", "link.html"].map(|name| folder.path().join(name));
        symlink("report.html", &link).expect("a link");
        check_writable(&link).expect("its folder is there");
        write(&link, "a report").expect("its folder is there");
        assert_eq!(fs::read_to_string(&file).expect("a file"), "a report");
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
    }
}
