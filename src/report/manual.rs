//! The tables of fields in `docs/output.md`: names and types are those of the columns, what a field means is said
//! there.

use super::cell::{Kind, names_in_text};
use super::column::{Column, Columns};
use super::flows_model::{FlowNames, FlowShape, flow_columns};
use super::{
    answers, compare_model, count_combinations, count_model, dedup, filter_info, flows_model,
    index, index_stats, index_verify, inputs, plan_model, reproduce_model, traffic_table,
};

/// The manual, in which the tables are brought up to date one after the other.
struct Manual {
    text: String,
    tables: usize,
}

impl Manual {
    /// Puts the columns in the place of this name, with what is said there of the fields that stay.
    fn put<R>(&mut self, name: &str, columns: &Columns<R>) {
        let mark = format!("<!-- columns: {name} -->\n");
        let found = self.text.split_once(&mark);
        let (before, rest) = found.unwrap_or_else(|| panic!("{name} has no place in the manual"));
        let (known, after) = rest.split_once(END).expect("a table has an end");
        self.text = format!("{before}{mark}{}{END}{after}", table(columns, known));
        self.tables += 1;
    }
}

const END: &str = "<!-- end -->\n";

/// Brings all tables up to date.
fn put_all(manual: &mut Manual) {
    let mut flows = flow_columns(FlowShape::Directed, FlowNames::Flowsieve);
    let both_ways = flow_columns(FlowShape::Bidirectional, FlowNames::Flowsieve).0;
    let more = both_ways.into_iter().filter(|column| {
        let mut known = flows.0.iter();
        known.all(|known| known.name != column.name)
    });
    let more: Vec<_> = more.collect();
    flows.0.extend(more);
    manual.put("count.parameters", &count_model::parameter_columns(false));
    manual.put("count.design", &count_combinations::design_columns());
    manual.put("count.slices", &count_model::slice_columns(0));
    manual.put(
        "count.combinations",
        &count_combinations::combination_columns(),
    );
    manual.put("count.inputs", &inputs::input_columns());
    manual.put("count.totals", &count_model::total_columns(None));
    manual.put("count.quantiles", &count_model::quantile_columns());
    manual.put("count.pairs", &traffic_table::pair_columns());
    manual.put("flows.parameters", &flows_model::parameter_columns());
    manual.put("flows.fields", &flows);
    manual.put("flows.ended", &flows_model::ended_columns());
    manual.put("flows.totals", &flows_model::total_columns());
    manual.put("filter.filters", &filter_info::filter_columns());
    manual.put("filter.combinations", &filter_info::stored_columns());
    manual.put("filter.answers", &answers::answer_columns());
    manual.put("plan.parameters", &plan_model::parameter_columns());
    manual.put("plan.wanted", &plan_model::wanted_columns());
    manual.put("plan.sample", &plan_model::sample_columns());
    manual.put("plan.spread", &plan_model::spread_columns());
    manual.put("plan.structures", &plan_model::structure_columns());
    manual.put("plan.rows", &plan_model::line_columns());
    manual.put("compare.parameters", &compare_model::parameter_columns());
    manual.put("compare.slices", &compare_model::judged_columns());
    manual.put("compare.structures", &compare_model::structure_columns());
    manual.put("compare.errors", &compare_model::error_columns());
    manual.put("compare.queries", &compare_model::query_columns());
    manual.put("compare.counts", &compare_model::count_columns());
    manual.put("compare.rows", &compare_model::flat_columns());
    manual.put("dedup.parameters", &dedup::parameter_columns());
    manual.put("dedup.distinguish", &dedup::difference_columns());
    manual.put("dedup.slices", &dedup::row_columns(0));
    manual.put("dedup.totals", &dedup::total_columns());
    manual.put("search.hits", &index::answer_columns());
    manual.put("search.explain", &index::explained_columns());
    manual.put("stats.index", &index_stats::whole_columns());
    manual.put("stats.nodes", &index_stats::node_columns());
    manual.put("stats.captures", &index_stats::capture_columns());
    manual.put("verify.index", &index_verify::verified_columns());
    manual.put("verify.problems", &index_verify::problem_columns());
    manual.put(
        "reproduce.parameters",
        &reproduce_model::parameter_columns(),
    );
    manual.put(
        "reproduce.experiments",
        &reproduce_model::experiment_columns(),
    );
    manual.put("reproduce.listed", &reproduce_model::listed_columns());
    manual.put("reproduce.cells", &reproduce_model::figure_columns());
    manual.put("reproduce.charts", &reproduce_model::chart_columns());
    manual.put("reproduce.axes", &reproduce_model::axis_columns());
    manual.put("reproduce.curves", &reproduce_model::curve_columns());
}

/// A table; what fields mean is taken from the one that is `known`.
fn table<R>(columns: &Columns<R>, known: &str) -> String {
    let others = columns.0.iter().any(|column| column.elsewhere.is_some());
    let mut lines = if others {
        vec![
            "| field | Zeek | ECS | IPFIX | type | meaning |".to_owned(),
            "|---|---|---|---|---|---|".to_owned(),
        ]
    } else {
        vec![
            "| field | type | meaning |".to_owned(),
            "|---|---|---|".to_owned(),
        ]
    };
    for column in &columns.0 {
        let quoted = |name: &str| format!("`{name}`");
        let names = names_in_text(&column.name, &column.kind);
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let mut cells = vec![names.join(", ")];
        if others {
            let [zeek, ecs, ipfix] = column.elsewhere.unwrap_or(["", "", ""]);
            let or_dash = |name: &str, text: String| match name {
                "" => "–".to_owned(),
                _ => text,
            };
            cells.push(or_dash(zeek, quoted(zeek)));
            cells.push(or_dash(ecs, quoted(ecs)));
            cells.push(or_dash(ipfix, ipfix.to_owned()));
        }
        let unit = if column.unit.is_empty() { "" } else { ", " };
        let null = if column.nullable { " or null" } else { "" };
        cells.push(format!("{}{unit}{}{null}", word(&column.kind), column.unit));
        cells.push(meaning(column, &cells[0], known));
        lines.push(format!("| {} |", cells.join(" | ")));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// What a column means: as it says itself, or as the manual does.
fn meaning<R>(column: &Column<R>, cells: &str, known: &str) -> String {
    if !column.doc.is_empty() {
        return column.doc.to_owned();
    }
    let mut lines = known.lines();
    let line = lines.find(|line| line.starts_with(&format!("| {cells} |")));
    let text = line.and_then(|line| line.trim_end_matches(" |").rsplit_once(" | "));
    text.map_or_else(String::new, |(_, text)| text.to_owned())
}

/// The type of a column.
fn word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Time(_) => "time",
        Kind::I64 | Kind::U64 | Kind::Whole => "integer",
        Kind::Seconds | Kind::F64 | Kind::Decimal => "number",
        Kind::Bool => "boolean",
        Kind::Text => "text",
        Kind::List(_) => "list",
        Kind::Object(_) | Kind::Tally => "object",
    }
}

#[test]
fn the_manual_has_the_columns_that_there_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/output.md");
    let before = std::fs::read_to_string(path).unwrap();
    let mut manual = Manual {
        text: before.clone(),
        tables: 0,
    };
    put_all(&mut manual);
    if std::env::var_os("FLOWSIEVE_WRITE_DOCS").is_some() {
        std::fs::write(path, &manual.text).unwrap();
    } else {
        assert!(
            manual.text == before,
            "docs/output.md is out of date: FLOWSIEVE_WRITE_DOCS=1 cargo test --lib report::manual writes it"
        );
    }
    assert_eq!(before.matches("<!-- columns: ").count(), manual.tables);
    let silent = manual.text.lines().find(|line| line.ends_with(" |  |"));
    assert!(
        silent.is_none(),
        "what this means must be said in docs/output.md: {silent:?}"
    );
}
