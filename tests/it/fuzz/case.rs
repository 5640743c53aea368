//! One random case: a table, a policy, a method, a form and a layout, all from one seed.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{take, take_record_batch};
use fastrand::Rng;

use super::layout::Layout;
use super::quasi::{Choice, Nulls, Published, Quasi};
use super::rules::Rule;
use super::table::{KEPT, QUASI, column, dependent};
use crate::adversary::values::{self, Value};
use crate::support::{Desk, INDEPENDENT, WHOLE_TABLE, batch};

/// Where the key of a run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The operating system: no two runs are the same.
    Secret,
    /// A seed in the job.
    Seed,
    /// The environment.
    Environment,
}

/// What happens to an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treat {
    Drop,
    Constant,
    /// Hexadecimal, or else base64url.
    Pseudonym(bool),
}

/// A public table, and the bounds on anybody's chance to be in the source.
pub struct Public {
    pub table: RecordBatch,
    pub min: f64,
    pub max: f64,
    pub people: usize,
}

/// A case, and everything that a checker must know of it.
pub struct Case {
    pub table: RecordBatch,
    pub public: Option<Public>,
    pub quasi: Vec<Quasi>,
    pub sensitive: Vec<String>,
    pub kept: Vec<String>,
    pub identifiers: Vec<(String, Treat)>,
    pub person: Option<String>,
    pub folders: Vec<String>,
    pub tagged: bool,
    pub k: usize,
    pub rules: Vec<(String, Rule)>,
    pub max_loss: Option<f64>,
    pub max_suppression: f64,
    /// Whether dependencies may make a run refuse, or withhold, more than the other rules do.
    pub infers: bool,
    pub method: &'static str,
    pub form: &'static str,
    pub key: Key,
    /// The job file, but for source and sink.
    pub job: String,
    pub cell_rows: usize,
    division: [usize; 2],
    layout: Layout,
    /// Hierarchy files by name.
    pub hierarchies: Vec<(String, String)>,
}

/// All methods; the first ones are asked for more often.
const METHODS: [&str; 27] = [
    "auto",
    "auto",
    "auto",
    "mondrian",
    "mondrian",
    "l-mondrian",
    "k-members",
    "k-members-p",
    "top-down",
    "full-domain",
    "density",
    "density-cm",
    "pair-enum",
    "k-assemble",
    "kl-redinfo",
    "g-anatomy",
    "anatomy",
    "toc",
    "upc",
    "mpalm",
    "spalm",
    "combined",
    "slicing",
    "incognito",
    "samarati",
    "datafly",
    "oka",
];

const EXACT_FORMS: [&str; 5] = ["bucketise", "slice", "permute", "anatomy", "anatomy-permuted"];

/// Tables of at most so many rows are small enough to try every grouping.
pub const SMALL: usize = 8;

#[test]
fn every_method_is_tried() {
    assert!(throng_core::methods::METHODS.iter().all(|entry| METHODS.contains(&entry.name)));
}

/// What is made so far of a case.
struct Draft<'a> {
    rng: &'a mut Rng,
    /// Rows of the source, and of the people that it is taken from.
    members: Vec<u32>,
    population: usize,
    columns: Vec<(String, ArrayRef)>,
    roles: String,
}

impl Draft<'_> {
    fn style(&mut self) -> u8 {
        self.rng.u8(0..4)
    }

    /// The share of nulls of a column.
    fn nulls(&mut self) -> f64 {
        *self.rng.choice(&[0.0, 0.0, 0.0, 0.1, 0.4]).unwrap()
    }

    /// Adds a column of the source.
    fn add(&mut self, name: &str, kind: &str, style: u8) -> ArrayRef {
        let (rows, share) = (self.members.len(), self.nulls());
        let array = column(self.rng, kind, rows, style, share);
        self.columns.push((name.to_owned(), Arc::clone(&array)));
        array
    }

    fn role(&mut self, name: &str, rest: &str) {
        writeln!(self.roles, "{name} = {{ {rest} }}").unwrap();
    }
}

impl Case {
    /// The case of a seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let method = *rng.choice(&METHODS).unwrap();
        let hides = ["mpalm", "spalm", "combined"].contains(&method);
        let depends = ["pair-enum", "k-assemble"].contains(&method);
        let form = match method {
            "combined" => "combined",
            "slicing" => "slice",
            "kl-redinfo" => "generalise",
            _ if hides || depends => "generalise",
            "anatomy" if rng.bool() => "anatomy",
            _ if rng.u8(0..5) > 1 => "generalise",
            _ => *rng.choice(&EXACT_FORMS).unwrap(),
        };
        let exact = EXACT_FORMS.contains(&form);
        let hides = hides || form == "generalise" && !depends && rng.u8(0..12) == 0;
        let rows = match rng.u8(0..5) {
            0 | 1 => rng.usize(1..=SMALL),
            _ => *rng.choice(&[9, 14, 20, 30, 30, 45, 60, 90, 150]).unwrap(),
        };
        let population = if hides { rows + rng.usize(0..=2 * rows) } else { rows };
        let mut members: Vec<u32> = (0..population as u32).collect();
        rng.shuffle(&mut members);
        members.truncate(rows);
        let k = if rows <= SMALL { rng.usize(2..5) } else { rng.usize(2..9) };
        let mut draft = Draft { rng: &mut rng, members, population, columns: Vec::new(), roles: String::new() };

        let depends = depends || form == "generalise" && !hides && draft.rng.u8(0..10) == 0;
        let (quasi, hierarchies, public) = draft.quasi(exact, hides, depends);
        let sensitive = draft.sensitive();
        let (kept, tagged, folders) = draft.kept(form);
        let person = (tagged && !hides && draft.rng.u8(0..8) == 0).then(|| draft.person());
        let identifiers = draft.identifiers(person.is_none());
        let Draft { rng, mut columns, mut roles, .. } = draft;
        if let Some(person) = &person {
            writeln!(roles, "{person}.role = \"identifier\"").unwrap();
        }
        rng.shuffle(&mut columns);
        let table = batch(columns.iter().map(|(name, array)| (name.as_str(), Arc::clone(array))).collect());

        let max_suppression = *rng.choice(&[0.0, 0.05, 0.3, 1.0]).unwrap();
        let max_loss =
            (method == "upc" || !exact && rng.u8(0..10) == 0).then(|| *rng.choice(&[0.2, 0.5, 0.8, 0.95]).unwrap());
        let rules = random_rules(rng, method, k, &sensitive);
        let mut privacy = format!("k = {k}\nmax-suppression = {max_suppression:?}\n");
        let mut by_key: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (column, rule) in &rules {
            let (key, value) = rule.job(column);
            by_key.entry(key).or_default().push(value);
        }
        by_key.iter().for_each(|(key, values)| writeln!(privacy, "{key} = [{}]", values.join(", ")).unwrap());
        max_loss.iter().for_each(|bound| writeln!(privacy, "max-loss = {bound:?}").unwrap());
        person.iter().for_each(|person| writeln!(privacy, "person = \"{person}\"").unwrap());
        let public = public.map(|table| {
            let share = rows as f64 / table.num_rows() as f64;
            let least = if rng.u8(0..4) == 0 { (share * 5.0).floor() / 10.0 } else { 0.0 };
            let people = if rng.u8(0..4) == 0 { rng.usize(1..=k + 2) } else { 0 };
            let most = (f64::midpoint(share, 1.0) * 100.0).ceil() / 100.0;
            Public { table, min: least, max: most, people }
        });
        if let Some(public) = &public {
            let people = if public.people > 0 { format!(", people = {}", public.people) } else { String::new() };
            let bounds = format!("min = {:?}, max = {:?}{people}", public.min, public.max);
            writeln!(privacy, "presence = {{ public = \"public/\", {bounds} }}").unwrap();
        }
        let inference = match (depends, &person) {
            (true, None) => *rng.choice(&["warn", "warn", "reject", "repair"]).unwrap(),
            _ => "warn",
        };
        if inference != "warn" {
            writeln!(privacy, "inference = \"{inference}\"").unwrap();
        }
        let key = match rng.u8(0..10) {
            0 => Key::Secret,
            1 | 2 => Key::Environment,
            _ => Key::Seed,
        };
        let mut job =
            format!("[privacy]\n{privacy}[columns]\n{roles}[method]\nname = \"{method}\"\nform = \"{form}\"\n");
        match key {
            Key::Secret => {}
            Key::Seed => writeln!(job, "seed = {}", rng.u32(0..1000)).unwrap(),
            Key::Environment => job += "key-env = \"FUZZ_KEY\"\n",
        }
        job += &options(rng, method);
        if form == "slice" {
            job += "slices = [[\"s0\"]]\n";
        }
        job += "[output]\n";
        if rng.bool() {
            // Files end where batches do: with small batches, a small size makes several of few rows.
            let (size, rows) = (64 * rng.usize(1..30), rng.usize(100..140));
            writeln!(job, "file-size = {size}\nfile-rows = 100\nrow-group-rows = {rows}").unwrap();
        }
        if !folders.is_empty() {
            writeln!(job, "partition-by = [\"{}\"]", folders.join("\", \"")).unwrap();
        }
        if depends {
            job += "[[dependencies]]\nfrom = [\"q0\"]\nto = [\"q1\"]\n";
        }
        let cell_rows = if WHOLE_TABLE.contains(&method) || rng.bool() { 100_000 } else { rng.usize(20..100) };
        let division = [rng.usize(1..5), *rng.choice(&[1, 7, 64, 8192]).unwrap()];
        let layout = Layout::random(rng);
        Self {
            table,
            public,
            quasi,
            sensitive: sensitive.into_iter().map(|(name, ..)| name).collect(),
            kept,
            identifiers,
            person,
            folders,
            tagged,
            k,
            rules,
            max_loss,
            max_suppression,
            infers: inference != "warn",
            method,
            form,
            key,
            job,
            cell_rows,
            division,
            layout,
            hierarchies,
        }
    }

    /// Whether quasi-identifiers are published as they are.
    pub fn is_exact(&self) -> bool {
        EXACT_FORMS.contains(&self.form)
    }

    /// Whether another run has as many files and partitions as the first, so that it has as many parts.
    pub fn has_same_layout(seed: u64) -> bool {
        seed.is_multiple_of(2)
    }

    /// Partitions and rows of a batch in the first run, or in another that differs in none, one or both of them.
    pub fn division(&self, again: Option<u64>) -> [usize; 2] {
        let mut division = self.division;
        if let Some(seed) = again {
            let mut rng = Rng::with_seed(seed);
            if !Self::has_same_layout(seed) {
                division[0] = rng.usize(1..6);
            }
            if rng.bool() {
                division[1] = *rng.choice(&[1, 3, 32, 8192]).unwrap();
            }
        }
        division
    }

    /// The arguments of a run.
    pub fn arguments(&self, again: Option<u64>) -> Vec<String> {
        let [partitions, batch] = self.division(again).map(|number| number.to_string());
        let cell = self.cell_rows.to_string();
        ["--quiet", "--run-id", "fuzz", "--cell-rows", &cell, "--partitions", &partitions, "--batch-rows", &batch]
            .map(str::to_owned)
            .to_vec()
    }

    /// Writes source, public table, hierarchies, the key of pseudonyms and the job.
    pub fn write(&self, desk: &Desk) {
        self.layout.write(&desk.path("in"), &self.table);
        if let Some(public) = &self.public {
            self.layout.write(&desk.path("public"), &public.table);
        }
        self.hierarchies.iter().for_each(|(name, text)| desk.write(name, text));
        desk.write("key", "a key of the fuzzer, 0123456789abcdef");
        desk.write("job.toml", &self.job_text("in", "out"));
    }

    /// The whole job file on a source.
    pub fn job_text(&self, source: &str, sink: &str) -> String {
        let sink = INDEPENDENT.replace("\"out\"", &format!("\"{sink}\""));
        format!("version = 1\nsource.url = \"{source}/\"\n{sink}\n{}", self.job)
    }

    /// The same rows in another order, and in other files or as many.
    pub fn write_again(&self, desk: &Desk, seed: u64) {
        let mut rng = Rng::with_seed(seed);
        let mut order: Vec<u32> = (0..self.table.num_rows() as u32).collect();
        rng.shuffle(&mut order);
        let shuffled = take_record_batch(&self.table, &UInt32Array::from(order)).unwrap();
        let layout = if Self::has_same_layout(seed) { self.layout.clone() } else { Layout::random(&mut rng) };
        layout.write(&desk.path("in-again"), &shuffled);
        desk.write("again.toml", &self.job_text("in-again", "out-again"));
    }

    /// All columns of the source.
    pub fn source(&self) -> HashMap<String, Vec<Value>> {
        let schema = self.table.schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.zip(self.table.columns().iter().map(|array| values::column(array.as_ref()))).collect()
    }
}

impl Draft<'_> {
    /// Quasi-identifiers, their hierarchy files, and the public table where there is one.
    fn quasi(
        &mut self,
        exact: bool,
        hides: bool,
        depends: bool,
    ) -> (Vec<Quasi>, Vec<(String, String)>, Option<RecordBatch>) {
        let members = UInt32Array::from(self.members.clone());
        let (mut quasi, mut hierarchies): (Vec<Quasi>, Vec<(String, String)>) = (Vec::new(), Vec::new());
        let mut public: Vec<(String, ArrayRef)> = Vec::new();
        for number in 0..self.rng.usize(1..4).max(if depends { 2 } else { 1 }) {
            let name = format!("q{number}");
            let kind = *self.rng.choice(&QUASI).unwrap();
            let (style, share) = (self.style(), self.nulls());
            let all = match public.first() {
                Some((_, first)) if depends && number == 1 => dependent(self.rng, kind, style, first),
                _ => column(self.rng, kind, self.population, style, share),
            };
            let Choice { published, mut options, file } =
                Choice::random(self.rng, kind, style, &all, &name, exact, hides);
            hierarchies.extend(file.map(|text| (format!("{name}.csv"), text)));
            let nulls = match self.rng.u8(0..12) {
                0 | 1 => Nulls::Drop,
                2 => Nulls::Reject,
                _ => Nulls::Category,
            };
            options += match nulls {
                Nulls::Drop => ", nulls = \"drop\"",
                Nulls::Reject => ", nulls = \"reject\"",
                Nulls::Category => "",
            };
            let withheld = !exact && !hides && !depends && number > 0 && self.rng.u8(0..12) == 0;
            if withheld {
                options += ", withhold = true";
            }
            if self.rng.u8(0..8) == 0 {
                options += ", priority = 2.5";
            }
            self.role(&name, &format!("role = \"quasi\", constant = \"allow\"{options}"));
            quasi.push(Quasi { name: name.clone(), published, nulls, withheld });
            self.columns.push((name.clone(), take(&all, &members, None).unwrap()));
            public.push((name, all));
        }
        let table = || batch(public.iter().map(|(name, array)| (name.as_str(), Arc::clone(array))).collect());
        (quasi, hierarchies, hides.then(table))
    }

    /// Sensitive columns, with what rules can be asked of them: whether they hold small numbers, and whether they have an
    /// order.
    fn sensitive(&mut self) -> Vec<(String, bool, bool)> {
        let mut found = Vec::new();
        for number in 0..self.rng.usize(1..3) {
            let name = format!("s{number}");
            let (kind, style) = (*self.rng.choice(&QUASI).unwrap(), self.style());
            self.add(&name, kind, style);
            self.role(&name, "role = \"sensitive\"");
            let numbers = style == 0 && (kind.contains("int") || kind.starts_with("float"));
            let ordered = !["bool", "text", "view", "dictionary"].contains(&kind);
            found.push((name, numbers, ordered));
        }
        found
    }

    /// Kept columns, whether one of them identifies all rows, and those that become folders.
    fn kept(&mut self, form: &str) -> (Vec<String>, bool, Vec<String>) {
        let (mut kept, mut folders) = (Vec::new(), Vec::new());
        for number in 0..self.rng.usize(0..3) {
            let name = format!("x{number}");
            let folder = form == "generalise" && self.rng.u8(0..5) == 0;
            let kind = match self.rng.bool() {
                _ if folder => *self.rng.choice(&["text", "int32", "bool", "view", "date32"]).unwrap(),
                true => *self.rng.choice(&KEPT).unwrap(),
                false => *self.rng.choice(&QUASI).unwrap(),
            };
            let style = if folder { 0 } else { self.style() };
            self.add(&name, kind, style);
            self.role(&name, "role = \"kept\"");
            if folder {
                folders.push(name.clone());
            }
            kept.push(name);
        }
        let tagged = self.rng.u8(0..5) > 0;
        if tagged {
            let mut tags: Vec<i64> = (0..self.members.len() as i64).collect();
            self.rng.shuffle(&mut tags);
            self.columns.push(("tag".to_owned(), Arc::new(Int64Array::from(tags))));
            self.role("tag", "role = \"kept\"");
            kept.push("tag".to_owned());
        }
        (kept, tagged, folders)
    }

    /// A column that identifies people, some of whom have several rows.
    fn person(&mut self) -> String {
        let kind = *self.rng.choice(&["int32", "text", "int64", "dictionary"]).unwrap();
        self.add("person", kind, 0);
        "person".to_owned()
    }

    fn identifiers(&mut self, with_pseudonyms: bool) -> Vec<(String, Treat)> {
        let mut found = Vec::new();
        for number in 0..self.rng.usize(0..3) {
            let name = format!("i{number}");
            let (kind, style) =
                (*self.rng.choice(&["int64", "text", "date32", "float64", "view"]).unwrap(), self.style());
            self.add(&name, kind, style);
            let treat = match self.rng.u8(0..4) {
                0 => Treat::Constant,
                1 if with_pseudonyms => Treat::Pseudonym(self.rng.bool()),
                _ => Treat::Drop,
            };
            let rest = match treat {
                Treat::Drop => "\"drop\"".to_owned(),
                Treat::Constant => "{ constant = \"somebody\" }".to_owned(),
                Treat::Pseudonym(hex) => {
                    let encoding = if hex { "hex" } else { "base64url" };
                    format!("{{ pseudonym = {{ key-file = \"key\", encoding = \"{encoding}\" }} }}")
                }
            };
            self.role(&name, &format!("role = \"identifier\", treat = {rest}"));
            found.push((name, treat));
        }
        found
    }
}

/// The rules of a method's case, by column.
fn random_rules(rng: &mut Rng, method: &str, k: usize, sensitive: &[(String, bool, bool)]) -> Vec<(String, Rule)> {
    let mut rules: Vec<(String, Rule)> = Vec::new();
    let first = sensitive[0].0.clone();
    match method {
        "kl-redinfo" | "g-anatomy" | "anatomy" | "l-mondrian" | "slicing" if rng.u8(0..5) > 0 => {
            rules.push((first, Rule::Distinct(rng.usize(2..=k.min(4)), "l-diversity")));
        }
        "upc" => rules.push((first, Rule::Identity(*rng.choice(&[0.5, 0.7, 0.9]).unwrap()))),
        _ => {}
    }
    for _ in 0..rng.usize(0..3) {
        let (name, numbers, ordered) = rng.choice(sensitive).unwrap();
        let rule = Rule::random(rng, k, *numbers, *ordered);
        let ranged = |rule: &Rule| matches!(rule, Rule::Identity(_) | Rule::Interval(..));
        // A column has one rule on ranges, and no range is known less surely than 1 in k.
        let twice = ranged(&rule) && rules.iter().any(|(column, other)| column == name && ranged(other));
        if !twice {
            rules.push((name.clone(), rule));
        }
    }
    rules
}

/// An option of a method, some of the time.
fn options(rng: &mut Rng, method: &str) -> String {
    const SUBSPACE: &str = "s = 20";
    const GAIN: &str = "split = \"gain\"";
    let words: &[&str] = match method {
        "auto" => &["effort = \"fast\"", "effort = \"thorough\"", "effort = \"best\""],
        "mondrian" => &["variant = \"relaxed\""],
        "l-mondrian" => &["failing = \"merge\"", "nodes = true"],
        "toc" => &["delta = 0.4", "w-utility = 0.3", "left-over = \"resulting\"", "tuning-rows = 50", SUBSPACE, GAIN],
        "upc" => &[SUBSPACE, GAIN, "width = \"raw\"", "left-over = \"increment\""],
        "k-members" | "top-down" | "slicing" | "oka" => &[SUBSPACE],
        "k-members-p" => &["protect = \"span\"", SUBSPACE],
        "density" => &["weights = \"height\"", "numbers = \"interval\"", SUBSPACE],
        "density-cm" => &["class = \"s0\"", "penalty = 0.0", SUBSPACE],
        "pair-enum" => &["neighbours = 0", "ties = \"first\"", SUBSPACE],
        "k-assemble" => &["seeds = 2", SUBSPACE],
        "kl-redinfo" => &[
            "sort = false",
            "incorporation = \"sequential\"",
            "cells = false",
            "nearest = true",
            "ties = \"place\"",
            "penalty = \"others\"",
        ],
        "full-domain" | "incognito" => &["cost = \"discernibility\"", "cost = \"height\""],
        "mpalm" => &["cuts = \"binary\""],
        "combined" => &["partition = \"mpalm\"", "partition = \"top-down\"", "failure = \"merge\""],
        _ => &[],
    };
    match rng.choice(words) {
        Some(word) if rng.bool() => format!("{method}.{word}\n"),
        _ => String::new(),
    }
}

impl Case {
    /// Whether published values can be compared with a public person's: what covers what is known of every column.
    pub fn tells_who_fits(&self) -> bool {
        !self.quasi.iter().any(|quasi| matches!(quasi.published, Published::Unknown | Published::Centroid))
    }
}
