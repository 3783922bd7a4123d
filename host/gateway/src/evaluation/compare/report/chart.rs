//! Charts as SVG. Policies are distinguished by dashes, shapes and the names beside the lines; colour only helps.

use std::fmt::Write;

use pmk_core::Language;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{markup::escape, table::count};
use crate::messages::terminal;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 42.0;

/// The most points of a line.
const MAX_POINTS: usize = 240;

/// The most columns of a name beside the lines, and how many of them are the end of a longer one.
const MAX_NAME: usize = 18;
const END_OF_NAME: usize = 8;

/// The distance of names, and the room that the outermost ones need above or below.
const NAME_STEP: f64 = 15.0;
const NAME_ROOM: f64 = 8.0;

/// The dash patterns of lines.
const DASHES: [&str; 6] = ["none", "8 4", "2 3", "12 4 2 4", "5 2", "1 5"];

/// The position of a policy in a plane, with confidence intervals.
pub(super) struct Point<'a> {
    pub label: &'a str,
    pub x: (f64, (f64, f64)),
    pub y: (f64, (f64, f64)),
}

/// The range of an axis, and the distance of its ticks.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// Creates an axis over these values with round ticks.
    fn over(low: f64, high: f64) -> Axis {
        let span = if high > low { high - low } else { high.abs().max(1.0) };
        let rough = span / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|by| by * power).into_iter().find(|&step| step >= rough).unwrap_or(rough);
        Axis { low: (low / step).floor() * step, high: (high.max(low + span) / step).ceil() * step, step }
    }

    fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// Returns those that are on the axis: its end need not be one.
    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let count = ((self.high - self.low) / self.step + 1e-6).floor() as usize;
        (0..=count).map(|at| self.low + self.step * at as f64)
    }
}

/// A plane with its axes.
struct Plane {
    x: Axis,
    y: Axis,
    svg: String,
}

impl Plane {
    fn new(title: &str, x: Axis, y: Axis, names: [String; 2], percent: bool) -> Plane {
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\"><g class=\"axis\">",
            escape(title)
        );
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let mut plane = Plane { x, y, svg: String::new() };
        for tick in plane.y.ticks() {
            let at = plane.at(plane.x.low, tick).1;
            let label = if percent { format!("{:.0} %", tick * 100.0) } else { count(tick.max(0.0) as u64) };
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 6.0,
                at + 4.0
            );
        }
        for tick in plane.x.ticks() {
            let at = plane.at(tick, plane.y.low).0;
            let _ = write!(
                svg,
                "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                count(tick.max(0.0) as u64)
            );
        }
        let middle = (LEFT + right) / 2.0;
        let _ = write!(
            svg,
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text x=\"14\" y=\"{:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {:.1})\">{}</text></g>",
            bottom + 34.0,
            escape(&names[0]),
            bottom / 2.0,
            bottom / 2.0,
            escape(&names[1])
        );
        plane.svg = svg;
        plane
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let width = WIDTH - LEFT - RIGHT;
        let height = HEIGHT - TOP - BOTTOM;
        (LEFT + self.x.share(x) * width, TOP + (1.0 - self.y.share(y)) * height)
    }

    fn finish(mut self) -> String {
        self.svg.push_str("</svg>");
        self.svg
    }
}

/// The average request size by turn, one line per policy.
pub(super) fn curves(series: &[(&str, Vec<u64>)], language: Language) -> String {
    let turns = series.iter().map(|(_, values)| values.len()).max().unwrap_or(0).max(2);
    let most = series.iter().flat_map(|(_, values)| values).max().copied().unwrap_or(0).max(1);
    let translated = |text| terminal::translated(text, language).into_owned();
    let title = translated("Tokens of the first request of each turn, on average");
    let axes = (Axis::over(1.0, turns as f64), Axis::over(0.0, most as f64));
    let x = Axis { low: 1.0, high: turns as f64, step: axes.0.step.max(1.0) };
    let names = [translated("turn of the conversation"), translated("tokens")];
    let mut plane = Plane::new(&title, x, axes.1, names, false);
    let mut labels = Vec::new();
    for (number, (label, values)) in series.iter().enumerate() {
        let points: Vec<(f64, f64)> = thinned(values).map(|(turn, value)| plane.at(turn, value)).collect();
        let Some(&(x, y)) = points.last() else { continue };
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = write!(
            plane.svg,
            "<polyline class=\"line s{}\" stroke-dasharray=\"{}\" points=\"{}\"/>",
            number % DASHES.len(),
            DASHES[number % DASHES.len()],
            path.join(" ")
        );
        plane.svg.push_str(&shape(number, x, y));
        labels.push((y, number, *label));
    }
    name_lines(&mut plane.svg, labels);
    plane.finish()
}

/// Writes the names beside the ends of the lines, without overlaps.
fn name_lines(svg: &mut String, mut labels: Vec<(f64, usize, &str)>) {
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let step = NAME_STEP.min((HEIGHT - 2.0 * NAME_ROOM) / labels.len().max(1) as f64);
    let mut free = NAME_ROOM;
    for (y, ..) in &mut labels {
        *y = y.max(free);
        free = *y + step;
    }
    // What would be below the axis pushes those above it up, if there is room for all above it.
    let needed = NAME_ROOM + step * labels.len().saturating_sub(1) as f64;
    let mut free = needed.max(HEIGHT - BOTTOM - 2.0);
    for (y, ..) in labels.iter_mut().rev() {
        *y = y.min(free);
        free = *y - step;
    }
    for (y, number, label) in labels {
        let x = WIDTH - RIGHT + 12.0;
        let (shown, label) = (escape(&fitting(label)), escape(label));
        let title = if shown == label { String::new() } else { format!("<title>{label}</title>") };
        let _ = write!(
            svg,
            "{}<text x=\"{:.1}\" y=\"{:.1}\">{title}{shown}</text>",
            shape(number, x + 4.0, y),
            x + 14.0,
            y + 4.0,
        );
    }
}

/// Shortens a name to what there is room for. Its end stays: the digest there may be all that tells two builds apart.
fn fitting(label: &str) -> String {
    if label.width() <= MAX_NAME {
        return label.to_owned();
    }
    let start = first_columns(label.chars(), MAX_NAME - END_OF_NAME - 1);
    let end = first_columns(label.chars().rev(), END_OF_NAME);
    start.iter().chain(&['…']).chain(end.iter().rev()).collect()
}

/// Returns the first of these characters, as many as there is room for.
fn first_columns(chars: impl Iterator<Item = char>, columns: usize) -> Vec<char> {
    let within = |used: &mut usize, next: char| {
        *used += next.width().unwrap_or(0);
        (*used <= columns).then_some(next)
    };
    chars.scan(0, within).collect()
}

/// The position of each policy by tokens and evidence.
pub(super) fn trade_off(points: &[Point<'_>], language: Language) -> String {
    let ends = |of: fn(&Point<'_>) -> (f64, (f64, f64))| {
        let values = points.iter().map(of).flat_map(|(value, (low, high))| [value, low, high]);
        values.filter(|value| value.is_finite()).fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (x_low, x_high) = ends(|point| point.x);
    let (y_low, y_high) = ends(|point| point.y);
    let translated = |text| terminal::translated(text, language).into_owned();
    let title = translated("Tokens against evidence");
    let names = [translated("tokens sent a turn"), translated("evidence visible")];
    // Where all shares are alike, the axis has all that there may be.
    let y = if y_low < y_high { Axis::over(y_low.max(0.0), y_high.min(1.0)) } else { Axis::over(0.0, 1.0) };
    let mut plane = Plane::new(&title, Axis::over(x_low, x_high), y, names, true);
    let mut labels = Vec::new();
    for (number, point) in points.iter().enumerate() {
        let (x, y) = plane.at(point.x.0, point.y.0);
        let (left, right) = (plane.at(point.x.1.0, point.y.0).0, plane.at(point.x.1.1, point.y.0).0);
        let (low, high) = (plane.at(point.x.0, point.y.1.0).1, plane.at(point.x.0, point.y.1.1).1);
        let class = number % DASHES.len();
        for (x1, y1, x2, y2) in [(left, y, right, y), (x, low, x, high)] {
            if [x1, y1, x2, y2].iter().all(|end| end.is_finite()) {
                let _ = write!(
                    plane.svg,
                    "<line class=\"line s{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
                );
            }
        }
        plane.svg.push_str(&shape(number, x, y));
        labels.push((y, number, point.label));
    }
    name_lines(&mut plane.svg, labels);
    plane.finish()
}

/// Returns at most [`MAX_POINTS`] of the values and the last one, each with its turn from 1.
fn thinned(values: &[u64]) -> impl Iterator<Item = (f64, f64)> + '_ {
    let step = values.len().div_ceil(MAX_POINTS).max(1);
    let last = values.len().saturating_sub(1);
    let shown = values.iter().enumerate().filter(move |(at, _)| at % step == 0 || *at == last);
    shown.map(|(at, &value)| ((at + 1) as f64, value as f64))
}

/// The shape of a policy.
pub(super) fn shape(number: usize, x: f64, y: f64) -> String {
    let class = format!("shape s{}", number % DASHES.len());
    let polygon = |points: &[(f64, f64)]| {
        let points: Vec<String> = points.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
        format!("<polygon class=\"{class}\" points=\"{}\"/>", points.join(" "))
    };
    match number % DASHES.len() {
        0 => format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>"),
        1 => polygon(&[(-4.2, -4.2), (4.2, -4.2), (4.2, 4.2), (-4.2, 4.2)]),
        2 => polygon(&[(0.0, -5.4), (5.2, 4.2), (-5.2, 4.2)]),
        3 => polygon(&[(0.0, -5.8), (5.8, 0.0), (0.0, 5.8), (-5.8, 0.0)]),
        4 => polygon(&[(0.0, 5.4), (5.2, -4.2), (-5.2, -4.2)]),
        _ => polygon(&[(-5.4, -2.0), (5.4, -2.0), (5.4, 2.0), (-5.4, 2.0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_ticks_that_hold_all_values() {
        for (low, high) in [(0.0, 1.0), (0.0, 93_217.0), (0.31, 0.34), (5.0, 5.0), (0.0, 0.0)] {
            let axis = Axis::over(low, high);
            let ticks: Vec<f64> = axis.ticks().collect();
            assert!(ticks.len() >= 2 && ticks.len() <= 12, "{ticks:?}");
            assert!(axis.low <= low && axis.high >= high, "{low} {high}: {ticks:?}");
        }
    }

    #[test]
    fn long_lines_are_thinned_to_their_last_point() {
        let values: Vec<u64> = (0..10_000).collect();
        let points: Vec<(f64, f64)> = thinned(&values).collect();
        assert!(points.len() <= MAX_POINTS + 1);
        assert_eq!(points.last(), Some(&(10_000.0, 9_999.0)));
        assert_eq!(thinned(&[]).count(), 0);
    }

    /// Regression: the fourth name and those after it were below the picture.
    #[test]
    fn names_of_equal_policies_were_written_below_the_picture() {
        let points = |label| Point { label, x: (1_000.0, (900.0, 1_100.0)), y: (0.0, (0.0, 0.0)) };
        for most in [7, 40] {
            let svg = trade_off(&vec!["strict"; most].into_iter().map(points).collect::<Vec<_>>(), Language::English);
            let heights = svg.split("<text ").skip(1).map(|text| {
                let y = text.split("y=\"").nth(1).and_then(|y| y.split('"').next()).expect("a position");
                y.parse::<f64>().expect("a number")
            });
            let heights: Vec<f64> = heights.collect();
            assert!(heights.iter().all(|&y| (0.0..=HEIGHT).contains(&y)), "{heights:?}");
            let of_names = &heights[heights.len() - most..];
            let lowest = if most == 7 { HEIGHT - BOTTOM + 4.0 } else { HEIGHT };
            assert!(of_names.iter().all(|&y| y <= lowest), "on those of the axis: {of_names:?}");
            assert!(heights.len() > most && svg.matches(">strict</text>").count() == most, "{svg}");
        }
    }

    /// Regression: where all policies kept everything, it went from 100 % to 200 %.
    #[test]
    fn the_axis_of_shares_went_beyond_the_whole() {
        let unknown = (f64::NEG_INFINITY, f64::INFINITY);
        for share in [0.0, 0.4, 1.0] {
            let points =
                ["standard", "strict"].map(|label| Point { label, x: (1_000.0, unknown), y: (share, unknown) });
            let svg = trade_off(&points, Language::English);
            let labels = svg.split('>').filter_map(|part| part.split_once(" %<")?.0.parse::<f64>().ok());
            let labels: Vec<f64> = labels.collect();
            assert_eq!((labels.first(), labels.last()), (Some(&0.0), Some(&100.0)), "{labels:?}");
        }
    }

    /// Regression: the last tick was beyond the last turn.
    #[test]
    fn the_ticks_of_turns_went_beyond_the_last_one() {
        for turns in [2, 3, 25, 40, 251] {
            let axis = Axis { low: 1.0, high: f64::from(turns), step: Axis::over(1.0, f64::from(turns)).step };
            assert!(axis.ticks().all(|tick| tick <= axis.high + 1e-3), "{turns}");
        }
        let svg = curves(&[("strict", vec![7; 25])], Language::English);
        assert!(svg.contains(">21</text>") && !svg.contains(">26</text>"), "{svg}");
    }

    /// Regression: it was cut at the edge, and with it what told two builds apart.
    #[test]
    fn a_long_name_lost_its_end() {
        let svg = curves(&[("standard 1.4.0 0123abcd", vec![1, 2])], Language::English);
        assert!(svg.contains("<title>standard 1.4.0 0123abcd</title>standard …0123abcd</text>"), "{svg}");
        assert_eq!(fitting("standard 1.4.0"), "standard 1.4.0");
        // Each of these takes two columns.
        assert_eq!(fitting("精簡的政策 0123abcd"), "精簡的政…0123abcd");
        assert_eq!(fitting("精簡的政策與回想"), "精簡的政策與回想");
    }

    #[test]
    fn names_are_escaped_wherever_they_stand() {
        let svg = curves(&[("<b>&\"", vec![1, 2, 3])], Language::English);
        assert!(svg.contains("&lt;b&gt;&amp;&quot;") && !svg.contains("<b>"), "{svg}");
    }
}
