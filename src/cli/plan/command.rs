//! The command that builds what is recommended.

use super::PlanArgs;
use crate::cli::run::Run;
use crate::cli::say::quoted;
use crate::cli::wanted::MOST_ELEMENTS;
use flowsieve::decode::Tunnel;
use flowsieve::elements::ElementKind;
use flowsieve::filters::{FilterKind, Reach};
use flowsieve::planner::{Elements, Goal, Plan, PlanRequest, PlanRow, Structure};

/// Options that decide what is read of the sample.
const SELECTING: [&str; 6] =
    ["--where", "--from", "--to", "--timezone", "--dnstap-type", "--input-format"];

impl PlanArgs {
    /// `flowsieve count` with the options that make the recommended filter, an option with its
    /// value as one; `None` if nothing is recommended, or if `count` has no options for it: for
    /// elements that it does not know, sizes by the rule of the paper's tables, or a share of known
    /// values that its design would depend on.
    pub(super) fn command(
        &self,
        run: &Run,
        request: &PlanRequest,
        plan: &Plan,
    ) -> Option<Vec<String>> {
        let kind = self.kind()?;
        let row = plan.rows.iter().find(|row| Some(row.structure) == plan.recommended)?;
        let Structure::Filter(filter) = row.structure else { return None };
        if request.known < 1.0 && rests_on_attributes(filter) {
            return None;
        }
        let mut words: Vec<String> = ["flowsieve", "count"].map(str::to_owned).into();
        let mut add = |option: &str, value: &str| words.push(format!("{option} {}", quoted(value)));
        if kind != ElementKind::default() {
            add("--element", &kind.name());
        }
        if self.read.tunnel == Tunnel::Inner {
            add("--tunnel", "inner");
        }
        if kind.has_name() {
            for port in &self.elements.dns.dns_port {
                add("--dns-port", &port.to_string());
            }
        }
        if !self.sample.is_empty() {
            // The numbers are those of the whole sample.
            add("--slice", "all");
        }
        add("--filter", filter.name());
        for want in &self.design.want {
            add("--want", want);
        }
        if self.design.want.is_empty() {
            add("--want", "all");
        }
        if let Some(cuts) = self.design.cuts.as_ref().filter(|_| filter.has_cuts()) {
            add("--cuts", cuts);
        }
        let weights = self.design.weights.as_ref();
        if let Some(weights) = weights.filter(|_| filter.has_weights()) {
            add("--weights", weights);
        }
        match request.goal {
            Goal::Memory { bytes } => add("--memory", &size(bytes)),
            Goal::Rate { fpr } => add("--fpr", &fpr.to_string()),
            Goal::AttributeRate { .. } => return None,
        }
        for number in numbers(request, row, filter, kind)? {
            add("--expect", &number);
        }
        words.extend(run.given(&SELECTING));
        if self.elements.undirected {
            words.push("--undirected".into());
        }
        if self.elements.queries_only && kind.has_name() {
            words.push("--queries-only".into());
        }
        words.push("CAPTURE".into());
        Some(words)
    }
}

/// Returns whether a structure's design depends on how many values its attributes have, and on how
/// many values of a negative are known.
fn rests_on_attributes(filter: FilterKind) -> bool {
    matches!(filter.reach(), Reach::Attributes | Reach::Matrix { .. })
}

/// Returns the values of `--expect`: the number of elements, and those of combinations that do not follow
/// from it but that the design depends on.
fn numbers(
    request: &PlanRequest,
    row: &PlanRow,
    filter: FilterKind,
    kind: ElementKind,
) -> Option<Vec<String>> {
    let elements = match row.elements {
        Some(elements) => request.elements.all(elements as f64),
        None => request.elements.clone(),
    };
    let relevant: Vec<u32> = if rests_on_attributes(filter) {
        (1..request.full()).collect()
    } else if filter.reach() == Reach::Planned {
        request.wanted.iter().map(|wanted| wanted.mask).collect()
    } else {
        Vec::new()
    };
    let whole = elements.whole();
    if !(1.0..=MOST_ELEMENTS as f64).contains(&whole) {
        return None;
    }
    let mut known = Vec::new();
    let mut numbers = vec![(whole as u64).to_string()];
    let derived = |known: &[_]| {
        let name = |mask| request.name(mask);
        Elements::new(&kind.most_values(), known, Some(whole as u64), name).ok()
    };
    for mask in relevant.iter().copied().filter(|&mask| mask != request.full()) {
        let number = elements.of(mask);
        if derived(&known)?.of(mask).total_cmp(&number).is_ne() {
            known.push((mask, number as u64, elements.origin(mask)));
            numbers.push(format!("{}={number}", request.name(mask)));
        }
    }
    // A number that was added later may bound one that was looked at before.
    let all = derived(&known)?;
    let same = |&mask: &u32| all.of(mask).total_cmp(&elements.of(mask)).is_eq();
    relevant.iter().all(same).then_some(numbers)
}

/// Returns bytes in the largest unit that keeps them whole, as options take them.
fn size(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}
