//! The fields of all results, for the tables in `docs/output.md` and for Python, from the columns
//! themselves.

use super::cell::Kind;
use super::column::{Column, Columns};
use super::export_model::export_columns;
use super::flows_model::{FlowNames, FlowShape, flow_columns};
#[cfg(feature = "reproduce")]
use super::reproduce_model;
use super::{
    compare_each, compare_model, compare_structures, count_combinations, count_model, dedup,
    export_model, filter_info, flows_model, index, index_stats, plan_model, run_view, top_model,
    traffic_table,
};
use crate::elements::ElementKind;

/// Tables with their names in the manual.
type Tables = Vec<(&'static str, Vec<FieldDoc>)>;

/// Returns all tables.
pub fn tables() -> Tables {
    let all = [tables_of_packets(), tables_of_structures(), other_tables()].concat();
    #[cfg(feature = "reproduce")]
    let all = [all, tables_of_experiments()].concat();
    all
}

/// Returns the tables of counts, flows and exports.
fn tables_of_packets() -> Tables {
    let mut flows = flow_columns(FlowShape::Directed, FlowNames::Flowsieve);
    let both_ways = flow_columns(FlowShape::Bidirectional, FlowNames::Flowsieve).0;
    let more = both_ways.into_iter().filter(|column| {
        let mut known = flows.0.iter();
        known.all(|known| known.name != column.name)
    });
    let more: Vec<_> = more.collect();
    flows.0.extend(more);
    // Those of flows are all that there are.
    let exported = export_columns(Some(ElementKind::FLOW), FlowNames::Flowsieve);
    vec![
        ("count.parameters", table(&count_model::parameter_columns(false))),
        ("count.design", table(&count_combinations::design_columns())),
        ("count.slices", table(&count_model::with_marks(count_model::slice_columns(0)))),
        ("count.combinations", table(&count_combinations::combination_columns())),
        ("count.inputs", table(&run_view::input_columns())),
        ("count.totals", table(&count_model::total_columns(None))),
        ("count.quantiles", table(&count_model::quantile_columns())),
        ("count.pairs", table(&traffic_table::pair_columns())),
        ("flows.parameters", table(&flows_model::parameter_columns())),
        ("flows.fields", table(&flows)),
        ("flows.ended", table(&flows_model::ended_columns())),
        ("flows.totals", table(&flows_model::total_columns())),
        ("export.parameters", table(&export_model::parameter_columns())),
        ("export.fields", table(&exported)),
        ("export.totals", table(&export_model::total_columns())),
    ]
}

/// Returns the tables of saved filters, plans and comparisons.
fn tables_of_structures() -> Tables {
    vec![
        ("filter.filters", table(&filter_info::filter_columns())),
        ("filter.combinations", table(&filter_info::stored_columns())),
        ("filter.answers", table(&filter_info::answer_columns())),
        ("filter.sets", table(&filter_info::overlap_columns())),
        ("plan.parameters", table(&plan_model::parameter_columns())),
        ("plan.wanted", table(&plan_model::wanted_columns())),
        ("plan.sample", table(&plan_model::sample_columns())),
        ("plan.spread", table(&plan_model::spread_columns())),
        ("plan.structures", table(&plan_model::structure_columns())),
        ("plan.rows", table(&plan_model::line_columns())),
        ("compare.parameters", table(&compare_model::parameter_columns())),
        ("compare.verdicts", table(&compare_model::verdict_columns())),
        ("compare.interval", table(&compare_model::interval_columns())),
        ("compare.split", table(&compare_model::split_columns())),
        ("compare.crossovers", table(&compare_model::crossover_columns())),
        ("compare.digests", table(&compare_model::digest_columns())),
        ("compare.floors", table(&compare_model::floor_columns())),
        ("compare.best_sets", table(&compare_model::best_columns())),
        ("compare.slices", table(&compare_model::judged_columns())),
        ("compare.structures", table(&compare_structures::structure_columns())),
        ("compare.errors", table(&compare_structures::error_columns())),
        ("compare.replicates", table(&compare_structures::seed_columns())),
        ("compare.queries", table(&compare_structures::query_columns())),
        ("compare.rows", table(&compare_structures::flat_columns())),
        ("compare.captures", table(&compare_each::capture_columns())),
        ("compare.each", table(&compare_each::each_columns())),
        ("compare.summary", table(&compare_each::sum_columns())),
    ]
}

/// Returns the tables of the other commands.
fn other_tables() -> Tables {
    vec![
        ("dedup.parameters", table(&dedup::parameter_columns())),
        ("dedup.distinguish", table(&dedup::difference_columns())),
        ("dedup.slices", table(&dedup::row_columns(0))),
        ("dedup.totals", table(&dedup::total_columns())),
        ("search.hits", table(&index::answer_columns())),
        ("search.explain", table(&index::explained_columns())),
        ("stats.index", table(&index_stats::whole_columns())),
        ("stats.nodes", table(&index_stats::node_columns())),
        ("stats.captures", table(&index_stats::capture_columns())),
        ("verify.index", table(&index_stats::verified_columns())),
        ("verify.problems", table(&index_stats::problem_columns())),
        ("top.parameters", table(&top_model::parameter_columns())),
        ("top.keys", table(&top_model::key_columns())),
        ("top.totals", table(&top_model::total_columns())),
    ]
}

/// Returns the tables of experiments.
#[cfg(feature = "reproduce")]
fn tables_of_experiments() -> Tables {
    vec![
        ("reproduce.parameters", table(&reproduce_model::parameter_columns())),
        ("reproduce.experiments", table(&reproduce_model::experiment_columns())),
        ("reproduce.listed", table(&reproduce_model::listed_columns())),
        ("reproduce.cells", table(&reproduce_model::figure_columns())),
        ("reproduce.charts", table(&reproduce_model::chart_columns())),
        ("reproduce.axes", table(&reproduce_model::axis_columns())),
        ("reproduce.curves", table(&reproduce_model::curve_columns())),
    ]
}

/// The documentation of a field.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FieldDoc {
    /// Its name; a moment has two fields, an integer and a time.
    pub names: Vec<String>,
    /// Its names in Zeek's logs, in the Elastic Common Schema and in IPFIX.
    pub aliases: Option<[&'static str; 3]>,
    /// Its type.
    pub kind: &'static str,
    /// Its unit; empty without one.
    pub unit: &'static str,
    /// Whether it may be missing.
    pub nullable: bool,
    /// Its meaning.
    pub doc: &'static str,
}

fn table<R>(columns: &Columns<R>) -> Vec<FieldDoc> {
    let field = |column: &Column<R>| FieldDoc {
        names: column.fields().into_iter().map(|(name, _)| name.into_owned()).collect(),
        aliases: column.aliases,
        kind: word(&column.kind),
        unit: column.unit,
        nullable: column.nullable,
        doc: column.doc,
    };
    columns.0.iter().map(field).collect()
}

/// Returns the word for a type.
fn word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Time(_) => "time",
        Kind::I64 | Kind::U64 | Kind::U16 | Kind::U8 => "integer",
        Kind::Seconds | Kind::F64 | Kind::Whole | Kind::Decimal => "number",
        Kind::Bool => "boolean",
        Kind::Text | Kind::Token | Kind::Address | Kind::Word => "text",
        Kind::List(_) => "list",
        Kind::Object => "object",
    }
}
