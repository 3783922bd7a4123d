//! The summary that a fresh session starts from (specification 001 §5): the latest requests and answers, shortened, the
//! channel, the uses of tools, the files that were mentioned, and the latest task. It is built from the newest message
//! back, so that a long session costs no more than a short one.

use std::collections::BTreeMap;

use pmk_policy_sdk::{LANGUAGE, Row, Segment, Summarize, Summary, Transcript, flag, origin};

use crate::Standard;

/// How many requests are carried over, and how many characters of each.
const REQUESTS: usize = 5;
const REQUEST_CHARS: u32 = 300;

/// How many answers are carried over, and how many characters of each.
const ANSWERS: usize = 3;
const ANSWER_CHARS: u32 = 500;

/// How far back tool calls are counted, in messages.
const TOOL_MESSAGES: usize = 400;

/// How many different files are named, and in how many of the latest messages they are searched for.
const FILES: usize = 12;
const FILE_MESSAGES: usize = 40;
const FILE_CHARS: u32 = 2_000;

/// How many different tools are named.
const TOOLS: usize = 10;

/// The maximum cost of a full summary, if all of it is Chinese. If the host keeps less, every part gets shorter.
const FULL_TOKENS: u64 = 4_500;

/// What was found so far, newest first.
#[derive(Default)]
struct Found {
    requests: Vec<u32>,
    answers: Vec<u32>,
    tools: BTreeMap<String, u32>,
    /// In the order in which they were found.
    files: Vec<String>,
    read: usize,
}

impl Summarize for Standard {
    fn summarize(transcript: &Transcript, summary: &Summary) {
        let mut found = Found::default();
        for segment in transcript.segments() {
            found.take(transcript, &segment);
            if found.is_complete() {
                break;
            }
        }
        let share = u64::from(summary.max_tokens()).min(FULL_TOKENS);
        let scaled = |chars: u32| u32::try_from(u64::from(chars) * share / FULL_TOKENS).unwrap_or(chars);

        let pick = |english, chinese| LANGUAGE.pick(english, chinese);
        summary.append(pick(
            "The conversation had grown too long for the model and goes on in a fresh session. What follows was cut \
             together from its latest messages; what came before them is gone from view. Carry on from here, and ask \
             where something needed is missing.\n",
            "對話太長，已在新的 session 繼續。以下取自最近的訊息，更早的內容已經看不到。請從這裡接著做，缺少需要的內容時請詢問。\n",
        ));
        let channel = transcript.channel();
        if !channel.is_empty() {
            summary.append(&format!("\n{}{channel}\n", pick("Last active channel: ", "最近的頻道：")));
        }
        list(
            transcript,
            summary,
            pick("Latest requests, newest last:", "最近的要求，最新的在最後："),
            &found.requests,
            scaled(REQUEST_CHARS),
        );
        list(
            transcript,
            summary,
            pick("Latest answers, newest last:", "最近的回答，最新的在最後："),
            &found.answers,
            scaled(ANSWER_CHARS),
        );
        let tools = found.tools();
        if !tools.is_empty() {
            summary.append(&format!("\n{}{tools}\n", pick("Tools used lately: ", "最近用過的工具：")));
        }
        if !found.files.is_empty() {
            let heading = pick("Files talked about lately: ", "最近談到的檔案：");
            summary.append(&format!("\n{heading}{}\n", found.files.join(", ")));
        }
        if let Some(&request) = found.requests.first() {
            let task = one_line(&transcript.text(request, 0, scaled(REQUEST_CHARS)));
            let heading = if found.answers.first().is_some_and(|&answer| answer > request) {
                pick(
                    "The latest task; how far it got, the latest answer says: ",
                    "最近的一件事，做到哪裡見最近的回答：",
                )
            } else {
                pick("The task that was open last: ", "最後還沒完成的事：")
            };
            summary.append(&format!("\n{heading}{task}\n"));
        }
    }
}

impl Found {
    /// Takes what is still needed from a segment.
    fn take(&mut self, transcript: &Transcript, segment: &Segment) {
        for row in segment.rows.iter().rev() {
            self.read += 1;
            if self.read <= FILE_MESSAGES && self.files.len() < FILES {
                self.take_files(&transcript.text(row.index, 0, FILE_CHARS));
            }
            if row.has(flag::TOOL_USE) {
                if self.read <= TOOL_MESSAGES {
                    for tool in transcript.tools(row.index) {
                        *self.tools.entry(tool).or_default() += 1;
                    }
                }
            } else if is_request(row) && self.requests.len() < REQUESTS {
                self.requests.push(row.index);
            } else if row.origin == origin::ASSISTANT && row.chars > 0 && self.answers.len() < ANSWERS {
                self.answers.push(row.index);
            }
        }
    }

    /// Collects words that look like a path that ends with a file name.
    fn take_files(&mut self, text: &str) {
        let edge = |c: char| !c.is_alphanumeric() && !matches!(c, '/' | '_' | '.');
        for word in text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '，' | '、' | '`' | '"' | '(' | ')'))
        {
            let word = word.trim_matches(edge).trim_end_matches('.');
            let name = word.rsplit('/').next().unwrap_or_default();
            let has_extension = name.rsplit_once('.').is_some_and(|(stem, extension)| {
                !stem.is_empty()
                    && (1..=5).contains(&extension.len())
                    && extension.chars().all(|c| c.is_ascii_alphanumeric())
            });
            let is_path = word.contains('/') && !word.contains("//") && word.len() <= 200 && has_extension;
            if is_path && self.files.len() < FILES && !self.files.iter().any(|file| file == word) {
                self.files.push(word.to_owned());
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.requests.len() >= REQUESTS && self.answers.len() >= ANSWERS
    }

    /// Tool names and counts, the most used first.
    fn tools(&self) -> String {
        let mut tools: Vec<(&String, &u32)> = self.tools.iter().collect();
        // The map is sorted by name, and the sort is stable.
        tools.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
        let named = tools.iter().take(TOOLS).map(|(name, times)| format!("{name} ×{times}"));
        named.collect::<Vec<_>>().join(", ")
    }
}

fn is_request(row: &Row) -> bool {
    row.origin == origin::USER && !row.has(flag::TOOL_RESULT) && row.chars > 0
}

/// Writes a list of messages with a heading, oldest first, each on one line.
fn list(transcript: &Transcript, summary: &Summary, heading: &str, newest_first: &[u32], chars: u32) {
    if newest_first.is_empty() || chars == 0 {
        return;
    }
    summary.append(&format!("\n{heading}\n"));
    for &index in newest_first.iter().rev() {
        // One more than is shown, to see whether anything is cut.
        let text = transcript.text(index, 0, chars + 1);
        let shown: String = text.chars().take(chars as usize).collect();
        let left_out = if shown.len() < text.len() { "…" } else { "" };
        summary.append(&format!("- {}{left_out}\n", one_line(&shown)));
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
