//! A filter of `count` that the planner designs for the combinations that are wanted.

use super::UsageError;
use super::wanted::{Numbers, cuts_of, wanted_of, weights_of};
use clap::Args;
use flowsieve::elements::ElementKind;
use flowsieve::filters::FilterKind;
use flowsieve::pipeline::CounterChoice;
use flowsieve::planner::{Elements, Goal, PlanRequest, Structure, plan};

// The purpose of a filter, and parts of its design.
#[derive(Args, Clone, Debug)]
pub(super) struct DesignArgs {
    /// A combination that queries ask for, and its weight, such as src,dst:3 or all
    ///
    /// The filter is planned for queries about these combinations, as frequent as their weights;
    /// without any, for whole elements (all). `count` also stores and counts them: it needs
    /// --expect, uses one shard, and always counts whole elements, but gives them the fewest bits
    /// unless you want them too.
    #[arg(long, value_name = "NAMES[:WEIGHT]", hide_short_help = true)]
    pub(super) want: Vec<String>,

    /// Your own cuts of CBFM and WCBFM, such as '1,3;1,2' or 'src,domain;dst,domain'
    #[arg(long, value_name = "CUTS", hide_short_help = true)]
    pub(super) cuts: Option<String>,

    /// Your own weights of WCBFM, one per attribute, such as 1,2,1
    #[arg(long, value_name = "WEIGHTS", allow_hyphen_values = true, hide_short_help = true)]
    pub(super) weights: Option<String>,
}

impl DesignArgs {
    /// Returns whether the planner designs the filter.
    pub(super) fn is_asked(&self) -> bool {
        !self.want.is_empty() || self.cuts.is_some() || self.weights.is_some()
    }

    /// Returns the filter that the planner designs with this structure for `expect` elements.
    pub(super) fn counter(
        &self,
        structure: Structure,
        kind: ElementKind,
        expect: &[String],
        goal: Goal,
    ) -> Result<CounterChoice, UsageError> {
        let filter = self.filter(structure)?;
        let attributes = kind.attributes().into_iter().map(str::to_owned);
        let structures = vec![Structure::Filter(filter)];
        let mut request = self.request(attributes.collect(), structures, goal)?;
        request.elements = expected(&request, kind, expect)?;
        let partial: Vec<u32> = request
            .wanted
            .iter()
            .map(|wanted| wanted.mask)
            .filter(|&mask| mask != request.full())
            .collect();
        if let (Some(&mask), true) = (partial.first(), filter.is_of_whole()) {
            return Err(UsageError::new(format!(
                "a {} filter knows whole elements only, and nothing of {}; --filter subset works",
                filter.name(),
                request.name(mask)
            )));
        }
        let planned = plan(&request).map_err(UsageError::new)?;
        let row = planned.rows.first().expect("one structure was asked for");
        let Some(spec) = row.spec() else {
            let why = row.notes.last().map_or("it does not fit", String::as_str);
            let works = match goal {
                Goal::Memory { .. } => "more --memory works",
                _ => "--memory 64KiB instead of --fpr works",
            };
            return Err(UsageError::new(format!(
                "no {} filter does what is wanted: {why}; {works}",
                filter.name()
            )));
        };
        Ok(CounterChoice::designed(filter, spec.clone(), partial))
    }

    /// Returns the structure, if the options that were given apply to it.
    fn filter(&self, structure: Structure) -> Result<FilterKind, UsageError> {
        let option = match self {
            Self { want, .. } if !want.is_empty() => "--want",
            Self { cuts: Some(_), .. } => "--cuts",
            _ => "--weights",
        };
        let Some(filter) = structure.filter() else {
            let name = structure.name();
            return Err(UsageError::new(format!(
                "{option} is about the design of a filter, and {name} is none; --filter subset --want src works, as does counting another --element"
            )));
        };
        if self.cuts.is_some() && !filter.has_cuts() {
            return Err(UsageError::new(format!(
                "only cbfm and wcbfm have cuts, and --filter is {}; --filter cbfm works",
                filter.name()
            )));
        }
        if self.weights.is_some() && !filter.has_weights() {
            return Err(UsageError::new(format!(
                "only wcbfm has weights, and --filter is {}; --filter wcbfm works",
                filter.name()
            )));
        }
        Ok(filter)
    }

    /// Returns the request to the planner for elements with these attributes, without their numbers.
    pub(super) fn request(
        &self,
        attributes: Vec<String>,
        structures: Vec<Structure>,
        goal: Goal,
    ) -> Result<PlanRequest, UsageError> {
        let cuts = self.cuts.as_deref().map(|cuts| cuts_of(&attributes, cuts));
        let none = vec![None; attributes.len()];
        Ok(PlanRequest {
            wanted: wanted_of(&attributes, &self.want)?,
            cuts: cuts.transpose()?,
            weights: self.weights.as_deref().map(weights_of).transpose()?,
            elements: Elements::new(&none, &[], Some(1), |_| String::new())
                .map_err(UsageError::new)?,
            attributes,
            goal,
            most_elements_in: None,
            known: 1.0,
            structures,
            skewed: false,
            key_bytes: 0,
        })
    }
}

/// Returns the numbers of elements that the user expects.
fn expected(
    request: &PlanRequest,
    kind: ElementKind,
    expect: &[String],
) -> Result<Elements, UsageError> {
    let mut numbers = Numbers::default();
    for text in expect {
        numbers.add(&request.attributes, text)?;
    }
    let whole = numbers.known.iter().any(|&(mask, ..)| mask == kind.all());
    if numbers.for_all.is_none() && !whole {
        return Err(UsageError::new(
            "a filter is designed for a number of distinct elements in a slice, which --expect says; --expect 100k works",
        ));
    }
    numbers.elements(request, &kind.most_values())
}
