//! SQL: `SELECT * FROM anonymize((SELECT ...), 'name of a policy')`, or with named arguments
//! `anonymize((SELECT * FROM people), k => 10, quasi => ['age', 'zip'], sensitive => ['disease'])`.
//!
//! Policies come from the registry of the session, see [`PolicyRegistry`].

use std::path::Path;
use std::sync::Arc;

use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, TableFactor, UnaryOperator, Value};
use toml::{Table, Value as Toml};

use crate::error::Error;
use crate::extension::AnonymizedTable;
use crate::methods;
use crate::operator::{Anonymize, PolicyRegistry};
use crate::policy::Policy;

/// Plans calls of `anonymize` in a FROM clause and leaves all other relations alone.
#[derive(Debug, Default)]
pub(crate) struct AnonymizeRelation {
    policies: Arc<PolicyRegistry>,
}

impl AnonymizeRelation {
    /// Creates it with the registry of policies that calls can name.
    pub(crate) fn new(policies: Arc<PolicyRegistry>) -> Self {
        Self { policies }
    }

    fn find_policy(&self, name: &Expr) -> Result<Arc<Policy>> {
        match parse_literal(name)? {
            Toml::String(name) => self.policies.resolve(&name).map_err(Error::into_datafusion),
            _ => plan_err!("{USAGE}"),
        }
    }
}

const USAGE: &str = "anonymize takes a query in parentheses, and either the name of a policy or named arguments: \
                     anonymize((SELECT ...), 'name') or anonymize((SELECT ...), k => 10, quasi => ['age'], ...)";

impl RelationPlanner for AnonymizeRelation {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table { name, alias, args: Some(arguments), .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if !name.to_string().eq_ignore_ascii_case("anonymize") {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(input)), policy @ ..] = arguments.args.as_slice() else {
            return plan_err!("{USAGE}");
        };
        // A table by its name in quotes is a call of the table function.
        if let (Expr::Value(_), [FunctionArg::Unnamed(_)]) = (input, policy) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let rows = plan_rows(input, context)?;
        let policy = match policy {
            [] => return plan_err!("{USAGE}"),
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(name))] => self.find_policy(name)?,
            arguments => Arc::new(written_policy(arguments)?),
        };
        let node = Anonymize::for_query(rows, policy, Some(&self.policies))?;
        let plan = AnonymizedTable::from(node).into_plan()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

/// The rows to anonymise: a query in parentheses. DataFusion looks up the tables of a statement before it is planned, and
/// does not find one that is named as a bare argument.
fn plan_rows(input: &Expr, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    match input {
        Expr::Subquery(query) => {
            context.plan(TableFactor::Derived { lateral: false, subquery: query.clone(), alias: None, sample: None })
        }
        Expr::Identifier(name) => plan_err!("anonymize: write (SELECT * FROM {name}) instead of {name}"),
        _ => plan_err!("{USAGE}"),
    }
}

/// Named arguments as the tables of a job file.
fn written_policy(arguments: &[FunctionArg]) -> Result<Policy> {
    let (mut privacy, mut columns, mut method, mut defaults) = (Table::new(), Table::new(), Table::new(), Table::new());
    let (mut options, mut window) = (Table::new(), Table::new());
    for argument in arguments {
        let FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } = argument else {
            return plan_err!("{USAGE}");
        };
        let (name, value) = (name.value.to_ascii_lowercase(), parse_literal(value)?);
        match name.as_str() {
            "quasi" | "sensitive" | "kept" | "identifier" => {
                let Toml::Array(listed) = value else {
                    return plan_err!("anonymize: {name} takes a list of column names, such as ['a', 'b']");
                };
                for column in listed {
                    let Toml::String(column) = column else {
                        return plan_err!("anonymize: {name} takes a list of column names, such as ['a', 'b']");
                    };
                    columns.insert(column, Toml::Table(Table::from_iter([("role".into(), Toml::from(name.as_str()))])));
                }
            }
            "others" => _ = defaults.insert("role".into(), value),
            "nulls" => _ = defaults.insert(name, value),
            "k" | "max_suppression" | "max_loss" => _ = privacy.insert(name.replace('_', "-"), value),
            "window" => _ = window.insert("rows".into(), value),
            "window_time" | "max_wait" => {
                _ = window.insert(name.trim_start_matches("window_").replace('_', "-"), value)
            }
            "method" => _ = method.insert("name".into(), value),
            "seed" | "form" => _ = method.insert(name, value),
            _ => _ = options.insert(name, value),
        }
    }
    if !options.is_empty() {
        let (name, options) = method_options(&method, options)?;
        method.insert(name, options);
    }
    let mut job = Table::new();
    for (name, table) in
        [("privacy", privacy), ("columns", columns), ("method", method), ("defaults", defaults), ("window", window)]
    {
        if !table.is_empty() {
            job.insert(name.into(), Toml::Table(table));
        }
    }
    Policy::from_table(job, Path::new(".")).map_err(Error::into_datafusion)
}

/// What is left of the arguments: options of the method, which stand in a table of its name.
fn method_options(method: &Table, options: Table) -> Result<(String, Toml)> {
    let name = method.get("name").and_then(Toml::as_str).unwrap_or(methods::METHODS[0].name);
    let Some(entry) = methods::find_method(name) else {
        let known: Vec<&str> = methods::METHODS.iter().map(|entry| entry.name).collect();
        return plan_err!("anonymize: there is no method {name}; there are {}", known.join(", "));
    };
    let mut table = Table::new();
    for (argument, value) in options {
        let option = argument.replace('_', "-");
        if entry.options.iter().all(|key| key.name != option) {
            let known: Vec<String> = entry.options.iter().map(|key| key.name.replace('-', "_")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return plan_err!(
                "anonymize: unknown argument {argument}; there are k, quasi, sensitive, kept, identifier, others, nulls, \
                 max_suppression, max_loss, method, seed, form, window, window_time, max_wait, and the options of the method {name}: {known}"
            );
        }
        table.insert(option, value);
    }
    Ok((name.to_owned(), Toml::Table(table)))
}

/// A number, text, truth value or list.
fn parse_literal(expression: &Expr) -> Result<Toml> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => parse_number(&text.to_string()),
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Ok(Toml::from(text.as_str())),
            Value::Boolean(value) => Ok(Toml::from(*value)),
            _ => plan_err!("{USAGE}"),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match parse_literal(expr)? {
            Toml::Integer(value) => Ok(Toml::from(-value)),
            Toml::Float(value) => Ok(Toml::from(-value)),
            _ => plan_err!("{USAGE}"),
        },
        Expr::Array(list) => list.elem.iter().map(parse_literal).collect::<Result<Vec<_>>>().map(Toml::Array),
        _ => plan_err!("{USAGE}"),
    }
}

fn parse_number(text: &str) -> Result<Toml> {
    text.parse::<i64>()
        .map(Toml::from)
        .or_else(|_| text.parse::<f64>().map(Toml::from))
        .map_err(|_| plan_datafusion_err!("{USAGE}"))
}
