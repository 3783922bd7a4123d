//! Markdown, as models write it, for a terminal: wrapped at words, with a little colour. The parser is the one used for
//! Slack. No control character reaches the terminal: an HTML entity may denote any character.

use std::{borrow::Cow, sync::LazyLock};

use anstyle::{AnsiColor, Style};
use comrak::{
    Arena, Node, Options,
    nodes::{ListType, NodeLink, NodeValue},
    parse_document,
};
use gh_emoji::Replacer;
use pmk_core::text::printable;
use textwrap::core::display_width;

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const CODE: Style = AnsiColor::Cyan.on_default();
/// The least columns in which text is wrapped, however deeply it is nested.
const LEAST_COLUMNS: usize = 16;

/// Replaces names of emoji in a text, such as `:gear:`, by the emoji.
pub(super) fn with_emoji(text: &str) -> Cow<'_, str> {
    static NAMES: LazyLock<Replacer> = LazyLock::new(Replacer::new);
    NAMES.replace_all(text)
}

/// Returns the Markdown in lines of at most this many columns, with line ends.
pub(super) fn render(source: &str, columns: usize, is_coloured: bool) -> String {
    let mut options = Options::default();
    options.extension.strikethrough = true;
    options.extension.table = true;
    options.extension.tasklist = true;
    options.extension.cjk_friendly_emphasis = true;
    let arena = Arena::new();
    let document = parse_document(&arena, source, &options);
    let lines = Page { is_coloured }.blocks(document, columns, true);
    // A source that shows nothing, such as a link definition, is shown as it is.
    let lines = if lines.is_empty() { vec![printable(source).into_owned()] } else { lines };
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

struct Page {
    is_coloured: bool,
}

impl Page {
    fn styled(&self, style: Style, text: &str) -> String {
        if self.is_coloured && style != PLAIN { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Returns the lines of everything in a node, with blank lines between blocks if `has_gaps`.
    fn blocks(&self, node: Node<'_>, columns: usize, has_gaps: bool) -> Vec<String> {
        let mut lines: Vec<String> = vec![];
        for child in node.children() {
            let block = self.block(child, columns.max(LEAST_COLUMNS));
            if has_gaps && !lines.is_empty() && !block.is_empty() {
                lines.push(String::new());
            }
            lines.extend(block);
        }
        lines
    }

    fn block(&self, node: Node<'_>, columns: usize) -> Vec<String> {
        match &node.data().value {
            NodeValue::Heading(_) => wrapped(&self.styled(BOLD, &self.inline(node)), columns),
            NodeValue::CodeBlock(code) => {
                code.literal.lines().map(|line| format!("  {}", self.styled(CODE, &printable(line)))).collect()
            }
            NodeValue::HtmlBlock(html) => html.literal.lines().map(|line| printable(line).into_owned()).collect(),
            NodeValue::ThematicBreak => vec![self.styled(DIM, &"─".repeat(columns.min(40)))],
            NodeValue::BlockQuote => {
                let bar = self.styled(DIM, "│ ");
                self.blocks(node, columns - 2, true).iter().map(|line| format!("{bar}{line}")).collect()
            }
            NodeValue::List(list) => {
                let mut lines = vec![];
                for (at, item) in node.children().enumerate() {
                    let mark = match &item.data().value {
                        NodeValue::TaskItem(task) if task.symbol.is_some() => "☑ ".to_owned(),
                        NodeValue::TaskItem(_) => "☐ ".to_owned(),
                        _ if list.list_type == ListType::Ordered => format!("{}. ", list.start + at),
                        _ => "• ".to_owned(),
                    };
                    if at > 0 && !list.tight {
                        lines.push(String::new());
                    }
                    let room = display_width(&mark);
                    let inner = self.blocks(item, columns.saturating_sub(room), !list.tight);
                    let marks = std::iter::once(mark.as_str()).chain(std::iter::repeat(&"          "[..room.min(10)]));
                    // An item may be empty.
                    let inner = if inner.is_empty() { vec![String::new()] } else { inner };
                    lines.extend(inner.iter().zip(marks).map(|(line, mark)| format!("{mark}{line}")));
                }
                lines
            }
            NodeValue::Table(_) => self.table(node, columns),
            _ => wrapped(&self.inline(node), columns),
        }
    }

    /// Renders columns side by side if there is room for them, and otherwise each row as a list.
    fn table(&self, node: Node<'_>, columns: usize) -> Vec<String> {
        let rows: Vec<Vec<String>> =
            node.children().map(|row| row.children().map(|cell| self.inline(cell)).collect()).collect();
        let [head, body @ ..] = &rows[..] else { return vec![] };
        let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| display_width(cell)).max();
        let widths: Vec<usize> = (0..head.len()).filter_map(width).collect();
        if widths.iter().map(|width| width + 2).sum::<usize>() > columns + 2 {
            let row = |cells: &Vec<String>| -> Vec<String> {
                let cells = head.iter().zip(cells);
                cells.flat_map(|(name, cell)| wrapped(&format!("{name}: {cell}"), columns)).collect()
            };
            return body.iter().map(row).collect::<Vec<_>>().join(&String::new());
        }
        let line = |style: Style, cells: &Vec<String>| -> String {
            let cells = cells.iter().zip(&widths);
            let filled = |(cell, width): (&String, &usize)| {
                format!("{}{}  ", self.styled(style, cell), " ".repeat(width - display_width(cell)))
            };
            cells.map(filled).collect()
        };
        std::iter::once(line(BOLD, head)).chain(body.iter().map(|row| line(PLAIN, row))).collect()
    }

    /// Returns the inline content of a paragraph, with line ends only where the Markdown requires
    /// them.
    fn inline(&self, node: Node<'_>) -> String {
        node.children().map(|child| self.span(child)).collect()
    }

    fn span(&self, node: Node<'_>) -> String {
        match &node.data().value {
            NodeValue::Text(text) => printable(&with_emoji(text)).into_owned(),
            NodeValue::Code(code) => self.styled(CODE, &printable(&code.literal)),
            NodeValue::HtmlInline(html) => printable(html).into_owned(),
            NodeValue::SoftBreak => " ".to_owned(),
            NodeValue::LineBreak => "\n".to_owned(),
            NodeValue::Strong => self.styled(BOLD, &self.inline(node)),
            NodeValue::Emph => self.styled(PLAIN.italic(), &self.inline(node)),
            NodeValue::Strikethrough => self.styled(PLAIN.strikethrough(), &self.inline(node)),
            NodeValue::Link(link) | NodeValue::Image(link) => self.link(link, &self.inline(node)),
            _ => self.inline(node),
        }
    }

    fn link(&self, link: &NodeLink, label: &str) -> String {
        let address = printable(&link.url);
        let is_its_own_label = label.is_empty() || label == address || link.url == format!("mailto:{label}");
        if is_its_own_label {
            return self.styled(PLAIN.underline(), if label.is_empty() { &address } else { label });
        }
        format!("{} {}", self.styled(PLAIN.underline(), label), self.styled(DIM, &format!("({address})")))
    }
}

/// The most columns of a hanging name.
const MOST_HANGING: usize = 16;

/// Wraps a line of a list such as `/help      this page`: continuation lines are aligned with the description, not with
/// the name.
pub(super) fn hanging(line: &str, columns: usize) -> Vec<String> {
    let gap = line.find("  ").filter(|gap| *gap > 0);
    let told = gap.map(|gap| line.len() - line[gap..].trim_start().len()).unwrap_or_default();
    let (name, told) = line.split_at(told);
    let room = display_width(name);
    if room > MOST_HANGING {
        return wrapped(line, columns);
    }
    let names = std::iter::once(name.to_owned()).chain(std::iter::repeat(" ".repeat(room)));
    names.zip(wrapped(told, columns.saturating_sub(room))).map(|(name, told)| name + &told).collect()
}

/// Wraps a text to lines of at most this many columns.
pub(super) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let options =
        textwrap::Options::new(columns.max(LEAST_COLUMNS)).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).into_iter().map(Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(source: &str) -> String {
        render(source, 40, false)
    }

    #[test]
    fn blocks_are_laid_out_for_a_terminal() {
        let source = "# Title\n\nA paragraph that is longer than forty columns are\nwide, with `code` and **weight**.\n\n\
                      - one\n- two\n  1. deep\n  2. deeper\n\n> said\n\n```rust\nlet x: u8 = 1; // :x:\n```\n\n\
                      | a | b |\n|---|---|\n| 預算 | 1 |\n| x | 22 |\n\n---\n\n- [x] done\n- [ ] not";
        insta::assert_snapshot!(plain(source));
    }

    #[test]
    fn chinese_is_broken_where_it_may_be() {
        for line in plain(&"目前的預算是一百萬元，其中媒體佔六成。".repeat(4)).lines() {
            assert!(display_width(line) <= 40 && !line.starts_with(['，', '。']), "{line}");
        }
        let narrow = render("| 名稱 | 值 |\n|---|---|\n| 一個很長的名稱 | 另一個很長的值 |", 20, false);
        assert_eq!(narrow, "名稱: 一個很長的名稱\n值: 另一個很長的值\n");
    }

    #[test]
    fn what_is_told_of_a_word_hangs_beside_it() {
        let lines = hanging("/yes /no   your word on the question that you were shown last", 40);
        assert_eq!(lines, ["/yes /no   your word on the question", "           that you were shown last"]);
        assert_eq!(
            hanging("停         停止正在進行的回答；`stop` 也是", 30),
            ["停         停止正在進行的回", "           答；`stop` 也是"]
        );
        assert_eq!(hanging("nothing hangs here", 16), ["nothing hangs", "here"]);
        assert_eq!(hanging("", 40), [""]);
    }

    #[test]
    fn names_of_emoji_are_emoji_but_not_in_code() {
        assert_eq!(
            plain(":white_check_mark: and :hourglass_flowing_sand: `:x:` 10:30:00"),
            "✅ and ⏳ `:x:` 10:30:00\n".replace('`', "")
        );
    }

    #[test]
    fn a_terminal_obeys_nothing_of_it() {
        for source in [
            "a &#27;[2J b",
            "`\u{1b}[2J`",
            "[x&#27;](http://a/\u{1b}[2J)",
            "<b\u{1b}[2J>",
            "```\n\u{9b}2J\n```",
            "\u{1b}",
        ] {
            assert!(!plain(source).chars().any(|c| c.is_control() && c != '\n'), "{source:?}: {:?}", plain(source));
        }
    }

    #[test]
    fn nothing_is_lost_however_deep_it_stands() {
        let deep = format!("{}x", "> ".repeat(30));
        assert!(plain(&deep).ends_with("x\n"));
        let list = (0..30).map(|depth| format!("{}- item{depth}\n", "  ".repeat(depth))).collect::<String>();
        for depth in 0..30 {
            assert!(plain(&list).contains(&format!("item{depth}")), "{depth}");
        }
        assert_eq!(plain("[a]: http://b"), "[a]: http://b\n");
    }
}
