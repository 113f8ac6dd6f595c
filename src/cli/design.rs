//! A filter of `count` that the planner designs for the combinations that are wanted.

use super::UsageError;
use super::wanted::{NumberOption, Numbers, cuts_of, wanted_of, weights_of};
use clap::Args;
use flowsieve::elements::ElementKind;
use flowsieve::filters::FilterKind;
use flowsieve::pipeline::CounterChoice;
use flowsieve::planner::{Elements, Goal, PlanRequest, Structure, plan};

#[derive(Args, Clone, Debug)]
pub(super) struct DesignArgs {
    /// A combination to store and count as well, and its weight, such as src:2 or all; needs --expect
    ///
    /// The filter is the one that `flowsieve plan` plans for the same options: for queries about these
    /// combinations, as often as their weights say. It has one shard. Whole elements are counted in any case, but
    /// asked for only if they are wanted as well (all): else they get the fewest bits.
    #[arg(long, value_name = "NAMES[:WEIGHT]", help_heading = "Filter")]
    want: Vec<String>,

    /// Cuts of CBFM and WCBFM by hand, such as 'src,domain;dst,domain'; needs --expect
    #[arg(long, value_name = "CUTS", help_heading = "Filter")]
    cuts: Option<String>,

    /// Weights of WCBFM by hand, one an attribute, such as 1,2,1; needs --expect
    #[arg(
        long,
        value_name = "WEIGHTS",
        allow_hyphen_values = true,
        help_heading = "Filter"
    )]
    weights: Option<String>,
}

/// The numbers that a design rests on.
pub(super) const EXPECT: NumberOption = NumberOption {
    name: "--expect",
    takes: "100k, and src=5k for one combination",
    not_zero: "--expect is the number of distinct elements in a slice, at least 1, not 0; --expect 1000 works",
};

impl DesignArgs {
    /// Whether the planner is asked.
    pub(super) fn is_asked(&self) -> bool {
        !self.want.is_empty() || self.cuts.is_some() || self.weights.is_some()
    }

    /// The filter that the planner makes of this structure for `expect` elements.
    pub(super) fn counter(
        &self,
        structure: Structure,
        kind: ElementKind,
        expect: &[String],
        goal: Goal,
    ) -> Result<CounterChoice, UsageError> {
        let filter = self.filter(structure)?;
        let request = self.request(filter, kind, expect, goal)?;
        let partial: Vec<u32> = request
            .wanted
            .iter()
            .map(|wanted| wanted.mask)
            .filter(|&mask| mask != request.full())
            .collect();
        if let (Some(&mask), true) = (partial.first(), filter.is_of_whole()) {
            return Err(UsageError(format!(
                "a {} filter knows whole elements only, and nothing of {}; --filter subset works",
                filter.name(),
                request.name(mask)
            )));
        }
        let planned = plan(&request).map_err(|error| UsageError(error.to_string()))?;
        let [row] = planned.rows.as_slice() else {
            unreachable!("one structure was asked for");
        };
        let Some(spec) = row.spec() else {
            let why = row.notes.last().map_or("it does not fit", String::as_str);
            let works = match goal {
                Goal::Memory { .. } => "more --memory works",
                _ => "--memory 64KiB instead of --fpr works",
            };
            return Err(UsageError(format!(
                "no {} filter does what is wanted: {why}; {works}",
                filter.name()
            )));
        };
        Ok(CounterChoice::designed(filter, spec.clone(), partial))
    }

    /// The structure, if it has what is given.
    fn filter(&self, structure: Structure) -> Result<FilterKind, UsageError> {
        let option = match self {
            Self { want, .. } if !want.is_empty() => "--want",
            Self { cuts: Some(_), .. } => "--cuts",
            _ => "--weights",
        };
        let Some(filter) = structure.filter() else {
            let name = structure.name();
            return Err(UsageError(format!(
                "{option} is about the design of a filter, and {name} is none; --filter subset --want src works, as does counting another --element"
            )));
        };
        if self.cuts.is_some() && !filter.has_cuts() {
            return Err(UsageError(format!(
                "only cbfm and wcbfm have cuts, and --filter is {}; --filter cbfm works",
                filter.name()
            )));
        }
        if self.weights.is_some() && !filter.has_weights() {
            return Err(UsageError(format!(
                "only wcbfm has weights, and --filter is {}; --filter wcbfm works",
                filter.name()
            )));
        }
        Ok(filter)
    }

    fn request(
        &self,
        filter: FilterKind,
        kind: ElementKind,
        expect: &[String],
        goal: Goal,
    ) -> Result<PlanRequest, UsageError> {
        let attributes: Vec<String> = kind.attributes().iter().map(ToString::to_string).collect();
        let cuts = self.cuts.as_deref().map(|cuts| cuts_of(&attributes, cuts));
        let wanted = wanted_of(&attributes, &self.want)?;
        let mut numbers = Numbers::default();
        for text in expect {
            numbers.add(EXPECT, &attributes, text)?;
        }
        let whole = numbers.known.iter().any(|&(mask, ..)| mask == kind.all());
        if numbers.for_all.is_none() && !whole {
            return Err(UsageError(
                "a filter is designed for a number of distinct elements in a slice, which --expect says; --expect 100k works".into(),
            ));
        }
        let mut request = PlanRequest {
            elements: unknown_numbers(&attributes)?,
            attributes,
            wanted,
            goal,
            known: 1.0,
            structures: vec![Structure::Filter(filter)],
            cuts: cuts.transpose()?,
            weights: self.weights.as_deref().map(weights_of).transpose()?,
            skewed: false,
            key_bytes: 0,
        };
        let name = |mask| request.name(mask);
        request.elements = Elements::new(kind.most_values(), &numbers.known, numbers.for_all, name)
            // The planner speaks of its own option.
            .map_err(|error| UsageError(error.to_string().replace("--n ", "--expect ")))?;
        Ok(request)
    }
}

/// Numbers that stand there until the real ones are known.
pub(super) fn unknown_numbers(attributes: &[String]) -> Result<Elements, UsageError> {
    let caps = vec![None; attributes.len()];
    Elements::new(&caps, &[], Some(1), |_| String::new())
        .map_err(|error| UsageError(error.to_string()))
}
