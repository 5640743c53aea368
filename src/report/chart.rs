//! Charts as inline SVG: bars and lines, in the colours of the page, each with a title, a description and a table of
//! the same numbers for those who cannot see it.

use super::bins::Histogram;
use super::text::{escape_html, format_number, format_share};

/// Counts charts, so that every one has an identity on its page.
#[derive(Debug, Default)]
pub(super) struct Charts {
    made: usize,
}

/// Width of all charts in their own units: narrow enough to be read on a phone without moving it about.
const WIDTH: f64 = 400.0;

/// Width of a letter in the small type of a chart, generously.
const LETTER: f64 = 7.0;

/// Letters of a name that there is room for.
const LONGEST: usize = 20;

/// One line of a line chart.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

impl Charts {
    /// The frame: title and description for readers, drawing, and the table.
    fn frame_chart(&mut self, title: &str, description: &str, height: f64, drawing: &str, table: &str) -> String {
        self.made += 1;
        let id = format!("chart-{}", self.made);
        format!(
            "<figure class=\"chart\"><svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{drawing}</svg>\
             <details><summary>Numbers of this chart</summary>{table}</details></figure>",
            escape_html(title),
            escape_html(description),
        )
    }

    /// A histogram of published rows.
    pub(super) fn draw_histogram(&mut self, name: &str, histogram: &Histogram) -> String {
        let all: f64 = histogram.bins.iter().map(|bin| bin.rows).sum();
        let rows: Vec<(String, f64)> =
            histogram.bins.iter().map(|bin| (bin.label.clone(), bin.rows / all.max(1.0))).collect();
        let mut table = String::from(
            "<table><thead><tr><th scope=\"col\">value</th><th scope=\"col\">rows</th></tr></thead><tbody>",
        );
        for (label, part) in &rows {
            table += &format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>", escape_html(label), format_share(*part));
        }
        table += "</tbody></table>";
        let description = format!("Share of rows by value of {name}, in {} bins", rows.len());
        let (height, drawing) = if histogram.ordered { draw_columns(&rows) } else { draw_bars(&rows) };
        self.frame_chart(&format!("{name} as published"), &description, height, &drawing, &table)
    }

    /// Draws named amounts as horizontal bars; `most` is the amount of a full bar and defaults to the largest.
    pub(super) fn draw_amounts(&mut self, title: &str, rows: &[(String, f64, String)], most: Option<f64>) -> String {
        let largest = most.unwrap_or_else(|| rows.iter().map(|row| row.1).fold(0.0, f64::max)).max(f64::MIN_POSITIVE);
        let widest = rows.iter().map(|row| row.2.chars().count()).max().unwrap_or(0) as f64;
        let longest = rows.iter().map(|row| row.0.chars().count()).max().unwrap_or(0).min(LONGEST) as f64;
        let (line, left, right) = (24.0, longest * LETTER + 14.0, widest * LETTER + 14.0);
        let mut drawing = String::new();
        for (at, (name, amount, label)) in rows.iter().enumerate() {
            let y = line * at as f64 + 4.0;
            let width = (amount / largest).clamp(0.0, 1.0) * (WIDTH - left - right);
            drawing += &draw_text(left - 8.0, y + 13.0, "end", &shorten_label(name, LONGEST));
            drawing += &draw_bar("after", left, y, width.max(0.5), 16.0);
            drawing += &draw_text(left + width + 6.0, y + 13.0, "start", label);
        }
        let mut table = String::from("<table><tbody>");
        for (name, _, label) in rows {
            table += &format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>", escape_html(name), escape_html(label));
        }
        table += "</tbody></table>";
        self.frame_chart(title, title, line * rows.len() as f64 + 6.0, &drawing, &table)
    }

    /// Lines over a common axis.
    pub(super) fn draw_curves(&mut self, title: &str, across: &str, up: &str, curves: &[Curve]) -> String {
        let longest = curves.iter().map(|curve| curve.name.chars().count()).max().unwrap_or(0) as f64;
        let (height, left, right, top, bottom) = (260.0, 40.0, longest * LETTER + 18.0, 30.0, 42.0);
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let most_x = points().map(|point| point.0).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        // Lines that are nothing but zero lie on the ground of a whole scale.
        let most_y = Some(points().map(|point| point.1).fold(0.0, f64::max)).filter(|most| *most > 0.0).unwrap_or(1.0);
        let x = |value: f64| left + value / most_x * (WIDTH - left - right);
        let y = |value: f64| height - bottom - value / most_y * (height - top - bottom);
        let mut drawing = String::new();
        for tick in axis_ticks(most_y) {
            drawing += &draw_rule(left, y(tick), WIDTH - right, y(tick), "grid");
            drawing += &draw_text(left - 8.0, y(tick) + 4.0, "end", &format_number(tick));
        }
        let mut at: Vec<f64> = points().map(|point| point.0).collect();
        at.sort_by(f64::total_cmp);
        at.dedup();
        for tick in at {
            drawing += &draw_text(x(tick), height - bottom + 18.0, "middle", &format_number(tick));
        }
        drawing += &draw_text((left + WIDTH - right) / 2.0, height - 6.0, "middle", across);
        drawing += &draw_text(2.0, 12.0, "start", up);
        let mut ends: Vec<f64> = Vec::new();
        for (kind, curve) in curves.iter().enumerate() {
            let path: Vec<String> =
                curve.points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
            drawing += &format!("<polyline class=\"curve c{}\" points=\"{}\"/>", kind % 6, path.join(" "));
            let radius = if curve.points.len() == 1 { 6.0 } else { 3.5 };
            for point in &curve.points {
                drawing += &format!(
                    "<circle class=\"dot c{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\"/>",
                    kind % 6,
                    x(point.0),
                    y(point.1)
                );
            }
            if let Some(last) = curve.points.last() {
                // Names stand beside the ends of their lines, one below the other where these meet; that of a single
                // point below the line that it may lie on.
                let mut height = y(last.1) + if curve.points.len() == 1 { 20.0 } else { 4.0 };
                while ends.iter().any(|end| (end - height).abs() < 14.0) {
                    height += 14.0;
                }
                ends.push(height);
                drawing += &format!(
                    "<g class=\"name c{}\">{}</g>",
                    kind % 6,
                    draw_text(x(last.0) + 10.0, height, "start", &curve.name)
                );
            }
        }
        let mut table = format!(
            "<table><thead><tr><th scope=\"col\">line</th><th scope=\"col\">{}</th><th scope=\"col\">{}</th></tr></thead><tbody>",
            escape_html(across),
            escape_html(up)
        );
        for curve in curves {
            for point in &curve.points {
                table += &format!(
                    "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>",
                    escape_html(&curve.name),
                    format_number(point.0),
                    format_number(point.1)
                );
            }
        }
        table += "</tbody></table>";
        self.frame_chart(title, &format!("{up} by {across}"), height, &drawing, &table)
    }
}

/// Columns beside each other, for values that have an order.
fn draw_columns(rows: &[(String, f64)]) -> (f64, String) {
    let (height, left, bottom, top) = (190.0, 50.0, 28.0, 10.0);
    let most = rows.iter().map(|row| row.1).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let slot = (WIDTH - left - 10.0) / rows.len().max(1) as f64;
    let y = |value: f64| height - bottom - value / most * (height - top - bottom);
    let mut drawing = String::new();
    for tick in axis_ticks(most) {
        drawing += &draw_rule(left, y(tick), WIDTH - 10.0, y(tick), "grid");
        drawing += &draw_text(left - 8.0, y(tick) + 4.0, "end", &format!("{} %", format_number(tick * 100.0)));
    }
    // As many labels as fit without touching.
    let widest = rows.iter().map(|row| row.0.chars().count()).max().unwrap_or(1) as f64 * LETTER;
    let every = (widest / slot).ceil().max(1.0) as usize;
    for (at, (label, part)) in rows.iter().enumerate() {
        let x = left + slot * at as f64;
        let tall = (height - bottom - y(*part)).max(0.5);
        drawing += &draw_bar("after", x + slot * 0.1, y(*part), (slot * 0.8).max(1.0), tall);
        if at % every == 0 {
            let half = label.chars().count() as f64 * LETTER / 2.0;
            let middle = (x + slot / 2.0).clamp(half, (WIDTH - half).max(half));
            drawing += &draw_text(middle, height - bottom + 18.0, "middle", label);
        }
    }
    drawing += &draw_rule(left, height - bottom, WIDTH - 10.0, height - bottom, "axis");
    (height, drawing)
}

/// Bars below each other, for names.
fn draw_bars(rows: &[(String, f64)]) -> (f64, String) {
    let longest = rows.iter().map(|row| row.0.chars().count()).max().unwrap_or(0).min(LONGEST) as f64;
    let left = longest * LETTER + 14.0;
    let (right, line) = (58.0, 23.0);
    let most = rows.iter().map(|row| row.1).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut drawing = String::new();
    for (at, (label, part)) in rows.iter().enumerate() {
        let y = line * at as f64 + 4.0;
        let width = (part / most * (WIDTH - left - right)).max(0.5);
        drawing += &draw_text(left - 8.0, y + line / 2.0, "end", &shorten_label(label, LONGEST));
        drawing += &draw_bar("after", left, y, width, 16.0);
        drawing += &draw_text(left + width + 6.0, y + 13.0, "start", &format_share(*part));
    }
    (line * rows.len().max(1) as f64 + 8.0, drawing)
}

fn draw_bar(class: &str, x: f64, y: f64, width: f64, height: f64) -> String {
    format!(
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"1.5\"/>"
    )
}

fn draw_text(x: f64, y: f64, anchor: &str, label: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape_html(label))
}

fn draw_rule(x1: f64, y1: f64, x2: f64, y2: f64, class: &str) -> String {
    format!("<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>")
}

/// Three to five round numbers from 0 up to the largest.
fn axis_ticks(most: f64) -> Vec<f64> {
    let power = 10_f64.powf(most.log10().floor());
    let steps = [0.1, 0.2, 0.25, 0.5, 1.0, 2.0];
    let step = steps.into_iter().map(|step| step * power).find(|step| most / step <= 5.0).unwrap_or(power);
    (0..=(most / step).floor() as usize).map(|at| at as f64 * step).collect()
}

/// A label cut to fit, the whole of it being in the table.
fn shorten_label(label: &str, most: usize) -> String {
    if label.chars().count() <= most {
        return label.to_owned();
    }
    label.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::bins::Bin;

    #[test]
    fn a_chart_escapes_names_and_carries_its_numbers() {
        let bins = vec![Bin { label: "<b>&\"".into(), rows: 30.0 }, Bin { label: "x".into(), rows: 10.0 }];
        let mut charts = Charts::default();
        let chart = charts.draw_histogram("col<umn>", &Histogram { bins, ordered: false });
        assert!(chart.contains("&lt;b&gt;&amp;&quot;") && !chart.contains("<b>") && !chart.contains("<umn>"));
        assert!(chart.contains("75.0 %") && chart.contains("role=\"img\"") && chart.contains("<desc"));
        let next = charts.draw_amounts("other", &[("a".into(), 0.5, "0.5".into())], Some(1.0));
        assert!(next.contains("chart-2-t"), "every chart has its own identity");
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(axis_ticks(1.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(axis_ticks(37.0), [0.0, 10.0, 20.0, 30.0]);
    }
}
