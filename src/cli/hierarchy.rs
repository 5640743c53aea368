//! `throng hierarchy`: make, check, draw and convert hierarchies.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use datafusion::logical_expr::{LogicalPlanBuilder, ident};

use crate::engine::SessionOptions;
use crate::error::{Error, Result, io_reason, unwritable_file};
use crate::explore::profile::{level_csv, profile_rows};
use crate::hierarchy::{InlineTree, LevelTree};
use crate::policy::{HierarchySpec, MAX_HIERARCHY_BYTES};
use crate::source::Source;
use crate::storage::{Stores, read_text};
use crate::terminal::{eprint_line, print_result};

/// Make, check, draw and convert hierarchies
///
/// A hierarchy file is a CSV of lines `value;level 1;...;*`, as ARX writes them.
///
/// Example: throng hierarchy draw pipelines/hierarchies/education.csv
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Propose a hierarchy for a column of a dataset; it holds the values of the column
    ///
    /// Example: throng hierarchy build data/ --column occupation -o occupation.csv
    Build {
        /// Parquet: a file, a folder, a pattern or an object-store prefix
        data: String,
        /// The column
        #[arg(long)]
        column: String,
        /// File to write. Defaults to standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Check a hierarchy, alone or against the values of a column
    ///
    /// Example: throng hierarchy check occupation.csv --data data/ --column occupation
    Check {
        /// A level CSV, or a tree in .toml or .json
        file: PathBuf,
        /// Dataset whose values the hierarchy must contain
        #[arg(long, requires = "column")]
        data: Option<String>,
        /// Column of the dataset
        #[arg(long, requires = "data")]
        column: Option<String>,
    },
    /// Draw a hierarchy as a tree of text, or as SVG
    ///
    /// Example: throng hierarchy draw occupation.csv --svg occupation.svg
    Draw {
        /// A level CSV, or a tree in .toml or .json
        file: PathBuf,
        /// Write a drawing instead
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        /// Maximum number of children shown per node
        #[arg(long, default_value_t = 20, value_name = "N")]
        most: usize,
    },
    /// Convert a hierarchy: level CSV of any separator, or a tree for the job file
    ///
    /// Example: throng hierarchy convert arx.csv --to toml
    Convert {
        /// A level CSV (separated by ; , tab or |), or a tree in .toml or .json
        file: PathBuf,
        /// Output format
        #[arg(long)]
        to: Form,
        /// File to write. Defaults to standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum Form {
    /// Lines `value;level 1;...;*`
    Csv,
    /// A table `tree` for the job file
    Toml,
    /// The same as JSON
    Json,
}

/// Runs the subcommand.
pub(crate) async fn run_hierarchy(arguments: Arguments, quiet: bool) -> Result<()> {
    match arguments.command {
        Command::Build { data, column, output } => build_hierarchy(&data, &column, output.as_deref(), quiet).await,
        Command::Check { file, data, column } => {
            let tree = open_hierarchy(&file)?;
            let (leaves, nodes) = (tree.leaves().len(), count_inner_nodes(&tree.outline().to_inline_trees()) + 1);
            let mut text =
                format!("{}: fine; {leaves} values, {nodes} nodes, {} levels", file.display(), tree.height());
            if let Some((data, column)) = data.zip(column) {
                text += &compare_values(&tree, &file, &data, &column).await?;
            }
            if quiet { Ok(()) } else { print_result(&text) }
        }
        Command::Draw { file, svg, most } => {
            let outline = open_hierarchy(&file)?.outline();
            match svg {
                Some(path) => write_output(Some(&path), outline.to_svg().as_bytes()),
                None => print_result(&outline.to_text(most.max(1))),
            }
        }
        Command::Convert { file, to, output } => {
            let tree = open_hierarchy(&file)?;
            let spec = || HierarchySpec::Tree { tree: tree.outline().to_inline_trees() };
            let failed = |error: String| Error::internal(error);
            let content = match to {
                Form::Csv => level_csv(&tree.level_rows())?,
                Form::Toml => toml::to_string(&spec()).map_err(|error| failed(error.to_string()))?.into_bytes(),
                Form::Json => serde_json::to_vec_pretty(&spec()).map_err(|error| failed(error.to_string()))?,
            };
            write_output(output.as_deref(), &content)
        }
    }
}

/// A tree from a file of any form.
fn open_hierarchy(path: &Path) -> Result<LevelTree> {
    let wrong = |reason: String| Error::job(format!("{}: {reason}", path.display()));
    let text = read_text(path, MAX_HIERARCHY_BYTES, "hierarchy file");
    let text = text.map_err(|error| wrong(format!("cannot be read: {}", io_reason(&error))))?;
    let spec: HierarchySpec = match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => toml::from_str(&text).map_err(|error| wrong(error.to_string()))?,
        Some("json") => serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?,
        _ => return LevelTree::from_csv(&text).map_err(|error| wrong(error.to_string())),
    };
    match spec {
        HierarchySpec::Tree { tree } => LevelTree::from_inline(&tree).map_err(|error| wrong(error.to_string())),
        _ => Err(wrong("is not a tree; only trees have values that can be drawn and converted".into())),
    }
}

fn count_inner_nodes(tree: &[InlineTree]) -> usize {
    let below = |node: &InlineTree| match node {
        InlineTree::Leaf(_) => 0,
        InlineTree::Node(_, children) => 1 + count_inner_nodes(children),
    };
    tree.iter().map(below).sum()
}

async fn build_hierarchy(data: &str, column: &str, output: Option<&Path>, quiet: bool) -> Result<()> {
    let (context, _spill) = SessionOptions::default().open()?;
    let source = Source::at_url(&Stores::default(), Path::new("."), data).await?;
    let (input, schema) = source.scan(&context).await?;
    ensure_column_exists(&schema, data, column)?;
    let plan = LogicalPlanBuilder::from(input).project([ident(column)])?.build()?;
    let found = profile_rows(&context, plan).await?;
    let content = found.columns[0].hierarchy_text()?;
    write_output(output, content.as_bytes())?;
    if let (Some(path), false) = (output, quiet) {
        eprint_line(&format!("wrote {}; it may contain values of the data", path.display()));
    }
    Ok(())
}

fn ensure_column_exists(schema: &datafusion::arrow::datatypes::Schema, data: &str, column: &str) -> Result<()> {
    match schema.field_with_name(column) {
        Ok(_) => Ok(()),
        Err(_) => {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            Err(Error::input(format!("`{data}` has no column `{column}`; it has {}", names.join(", "))))
        }
    }
}

/// Counts the values that hierarchy and column do not share.
async fn compare_values(tree: &LevelTree, file: &Path, data: &str, column: &str) -> Result<String> {
    use datafusion::arrow::array::{Array, AsArray};
    use datafusion::functions_aggregate::expr_fn::count;
    use datafusion::logical_expr::lit;
    let (context, _spill) = SessionOptions::default().open()?;
    let source = Source::at_url(&Stores::default(), Path::new("."), data).await?;
    let (input, schema) = source.scan(&context).await?;
    ensure_column_exists(&schema, data, column)?;
    let plan = LogicalPlanBuilder::from(input).aggregate([ident(column)], [count(lit(1))])?.build()?;
    let batches = context.execute_logical_plan(plan).await?.collect().await?;
    let (mut unmatched, mut rows, mut seen) = (0_u64, 0_i64, 0);
    for batch in &batches {
        let (values, counts) = (crate::encode::to_text(batch.column(0))?, batch.column(1));
        let counts = counts.as_primitive::<datafusion::arrow::datatypes::Int64Type>();
        for row in (0..batch.num_rows()).filter(|row| !values.is_null(*row)) {
            match tree.find_leaf(values.value(row)) {
                Some(_) => seen += 1,
                None => (unmatched, rows) = (unmatched + 1, rows + counts.value(row)),
            }
        }
    }
    if unmatched > 0 {
        return Err(Error::job(format!(
            "{}: {unmatched} values of `{column}` in {rows} rows are not in the hierarchy; add them, or set unknown = \"top\"",
            file.display()
        )));
    }
    Ok(format!("; contains all {seen} values of `{column}`, and {} more", tree.leaves().len() - seen))
}

/// Writes a file, or to standard output.
fn write_output(path: Option<&Path>, content: &[u8]) -> Result<()> {
    match path {
        None => print_result(&String::from_utf8_lossy(content)),
        Some(path) => std::fs::write(path, content).map_err(|error| unwritable_file(path, &error)),
    }
}
