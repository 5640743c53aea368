//! Trees for people to look at: as text, as SVG, and as rows of a level file.

use super::{InlineTree, LevelTree};

/// A node and what is below it, in depth-first order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Name of the node or value.
    pub label: String,
    /// Values below it; 1 for a value.
    pub leaves: usize,
    /// What is below it; nothing for a value.
    pub children: Vec<Outline>,
}

impl LevelTree {
    /// The tree as nested nodes.
    pub fn outline(&self) -> Outline {
        let mut root = Outline { label: self.root().to_owned(), leaves: 0, children: Vec::new() };
        for leaf in 0..self.leaves().len() as u32 {
            let mut path = self.parents(leaf).to_vec();
            path.dedup();
            path.reverse();
            let mut at = &mut root;
            at.leaves += 1;
            for &node in path.iter().skip(1) {
                let label = self.node_label(node);
                // Leaves of one node are neighbours, so the node is the last child or a new one.
                if at.children.last().is_none_or(|last| last.label != label || last.children.is_empty()) {
                    at.children.push(Outline { label: label.to_owned(), leaves: 0, children: Vec::new() });
                }
                let last = at.children.len() - 1;
                at = &mut at.children[last];
                at.leaves += 1;
            }
            at.children.push(Outline { label: self.leaf_label(leaf).to_owned(), leaves: 1, children: Vec::new() });
        }
        root
    }

    /// Rows of a level file, all of one length: shorter ones repeat the root.
    pub fn level_rows(&self) -> Vec<Vec<String>> {
        let height = self.height();
        let row = |leaf: u32| {
            let above = self.parents(leaf).iter().map(|node| self.node_label(*node));
            let row: Vec<&str> = std::iter::once(self.leaf_label(leaf)).chain(above).collect();
            let filled = row.iter().copied().chain(std::iter::repeat(self.root())).take(height + 1);
            filled.map(str::to_owned).collect()
        };
        (0..self.leaves().len() as u32).map(row).collect()
    }
}

impl Outline {
    /// What is below the node, as it stands in a job file. A node over one value of its own name is that value.
    pub fn to_inline_trees(&self) -> Vec<InlineTree> {
        let tree = |child: &Outline| match child.children.as_slice() {
            [] => InlineTree::Leaf(child.label.clone()),
            [only] if only.children.is_empty() && only.label == child.label => InlineTree::Leaf(child.label.clone()),
            _ => InlineTree::Node(child.label.clone(), child.to_inline_trees()),
        };
        self.children.iter().map(tree).collect()
    }

    /// Draws the tree as text, one line per node; of more than `most` children the rest are counted.
    pub fn to_text(&self, most: usize) -> String {
        let mut lines = vec![format!("{} ({} values)", self.label, self.leaves)];
        self.draw_lines("", most, &mut lines);
        lines.join("\n")
    }

    fn draw_lines(&self, before: &str, most: usize, lines: &mut Vec<String>) {
        let hidden = self.children.len().saturating_sub(most);
        let shown = &self.children[..self.children.len() - hidden];
        for (at, child) in shown.iter().enumerate() {
            let last = at + 1 == shown.len() && hidden == 0;
            let (branch, below) = if last { ("└── ", "    ") } else { ("├── ", "│   ") };
            let size = if child.children.is_empty() { String::new() } else { format!(" ({})", child.leaves) };
            lines.push(format!("{before}{branch}{}{size}", child.label));
            child.draw_lines(&format!("{before}{below}"), most, lines);
        }
        if hidden > 0 {
            lines.push(format!("{before}└── and {hidden} more"));
        }
    }

    /// Draws the tree as SVG: root on the left, values on the right.
    pub fn to_svg(&self) -> String {
        const STEP: f64 = 190.0;
        const LINE: f64 = 22.0;
        let mut drawing = String::new();
        let mut next = 0.0;
        draw_node(self, 0, &mut next, &mut drawing, (STEP, LINE));
        let (width, height) = (STEP * (self.depth() + 1) as f64 + 40.0, LINE * next + 20.0);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"13\"><title>Hierarchy of {} values</title>\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>{drawing}</svg>\n",
            self.leaves
        )
    }

    /// Levels below the node.
    fn depth(&self) -> usize {
        self.children.iter().map(|child| child.depth() + 1).max().unwrap_or(0)
    }
}

/// Draws a node in the middle of its children, and answers its height.
fn draw_node(node: &Outline, level: usize, next: &mut f64, drawing: &mut String, (step, line): (f64, f64)) -> f64 {
    let x = 20.0 + step * level as f64;
    let below: Vec<f64> =
        node.children.iter().map(|child| draw_node(child, level + 1, next, drawing, (step, line))).collect();
    let y = match (below.first(), below.last()) {
        (Some(first), Some(last)) => (first + last) / 2.0,
        _ => {
            *next += 1.0;
            line * *next
        }
    };
    let label = shorten_label(&node.label);
    let width = 7.2 * label.chars().count() as f64 + 6.0;
    for end in below {
        let (from, to) = (x + width.min(step - 24.0), x + step - 6.0);
        let middle = (from + to) / 2.0;
        *drawing += &format!(
            "<path d=\"M{from:.1} {y:.1} C{middle:.1} {y:.1} {middle:.1} {end:.1} {to:.1} {end:.1}\" fill=\"none\" stroke=\"#9aa5ab\"/>"
        );
    }
    let weight = if node.children.is_empty() { "400" } else { "600" };
    *drawing += &format!(
        "<text x=\"{x:.1}\" y=\"{:.1}\" font-weight=\"{weight}\" fill=\"#1d2428\">{}</text>",
        y + 4.5,
        escape_xml(&label)
    );
    y
}

fn shorten_label(label: &str) -> String {
    const MAX_CHARS: usize = 22;
    if label.chars().count() <= MAX_CHARS {
        label.to_owned()
    } else {
        label.chars().take(MAX_CHARS - 1).chain(['…']).collect()
    }
}

fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOWNS: &str = "York;North;*\nLeeds;North;*\nBath;South;*\nEly;Ely;*\n";

    #[test]
    fn drawn_as_text() {
        let outline = LevelTree::from_csv(TOWNS).unwrap().outline();
        let text = "* (4 values)\n├── North (2)\n│   ├── York\n│   └── Leeds\n├── South (1)\n│   └── Bath\n└── Ely (1)\n    └── Ely";
        assert_eq!(outline.to_text(9), text);
        assert_eq!(outline.to_text(1), "* (4 values)\n├── North (2)\n│   ├── York\n│   └── and 1 more\n└── and 2 more");
    }

    #[test]
    fn drawn_as_svg() {
        let outline = LevelTree::from_csv("<a>;x&y;*\nb;x&y;*\n").unwrap().outline();
        let svg = outline.to_svg();
        assert!(svg.contains("&lt;a&gt;") && svg.contains("x&amp;y") && !svg.contains("<a>"));
        assert_eq!(svg.matches("<path").count(), 3);
    }

    proptest! {
        #[test]
        fn rows_and_inline_trees_give_the_same_tree_back(shape in prop::collection::vec((0..4_u8, 0..3_u8), 2..40)) {
            let csv: String = shape.iter().enumerate().map(|(at, (a, b))| format!("v{at};g{a}.{b};h{a};*\n")).collect();
            let tree = LevelTree::from_csv(&csv).unwrap();
            let rows: String = tree.level_rows().iter().map(|row| row.join(";") + "\n").collect();
            prop_assert_eq!(&LevelTree::from_csv(&rows).unwrap().outline(), &tree.outline());
            prop_assert_eq!(&LevelTree::from_inline(&tree.outline().to_inline_trees()).unwrap().outline(), &tree.outline());
        }
    }
}
