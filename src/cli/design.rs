//! Designs the filter of `count` for the wanted combinations, and parses the options about
//! combinations of attributes, which `plan` and `compare` share.

use super::UsageError;
use super::units::parse_count;
use clap::Args;
use flowsieve::elements::ElementKind;
use flowsieve::filters::FilterKind;
use flowsieve::pipeline::CounterChoice;
use flowsieve::planner::{Elements, Goal, Origin, PlanRequest, Structure, Wanted, plan};

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

/// Parses names, or numbers from 1, of attributes, separated by commas; or `all`.
pub(super) fn mask_of(attributes: &[String], names: &str) -> Result<u32, UsageError> {
    if names == "all" {
        return Ok(((1_u64 << attributes.len()) - 1) as u32);
    }
    names.split(',').try_fold(0, |mask, name| {
        let number = name.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let place = attributes.iter().position(|own| *own == name.replace('-', "_"));
        match place.or(number.filter(|&number| number < attributes.len())) {
            Some(place) if mask >> place & 1 == 1 => Err(UsageError::new(format!(
                "a combination names each attribute once, and {name} is there twice in {names:?}; leave one out"
            ))),
            Some(place) => Ok(mask | 1 << place),
            None => Err(UsageError::new(format!(
                "the attributes are {}, not {name:?}; {} works",
                attributes.join(", "),
                attributes[0]
            ))),
        }
    })
}

/// Parses the values of `--want`; without any, all attributes together.
pub(super) fn wanted_of(
    attributes: &[String],
    wants: &[String],
) -> Result<Vec<Wanted>, UsageError> {
    if wants.is_empty() {
        return wanted_of(attributes, &["all".to_owned()]);
    }
    let wanted = wants.iter().map(|want| {
        let (names, weight) = match want.rsplit_once(':') {
            Some((names, weight)) => (names, parse_weight(weight)?),
            None => (want.as_str(), 1.0),
        };
        Ok(Wanted { mask: mask_of(attributes, names)?, weight })
    });
    wanted.collect()
}

/// Parses the value of `--cuts`: combinations separated by semicolons.
pub(super) fn cuts_of(attributes: &[String], cuts: &str) -> Result<Vec<u32>, UsageError> {
    let cuts = cuts.split(';');
    cuts.map(|cut| mask_of(attributes, cut)).collect()
}

/// Parses the value of `--weights`: numbers separated by commas.
pub(super) fn weights_of(weights: &str) -> Result<Vec<f64>, UsageError> {
    weights.split(',').map(parse_weight).collect()
}

fn parse_weight(text: &str) -> Result<f64, UsageError> {
    text.parse().map_err(|_| {
        UsageError::new(format!("a weight is a number from 0 on, such as 3 or 0.5, not {text:?}"))
    })
}

/// Numbers of distinct values of combinations.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Numbers of single combinations.
    pub(super) known: Vec<(u32, u64, Origin)>,
    /// Upper bound for every other combination.
    pub(super) for_all: Option<u64>,
}

impl Numbers {
    /// Adds a value of `--expect`: `100k`, or `src=5k`.
    pub(super) fn add(&mut self, attributes: &[String], text: &str) -> Result<(), UsageError> {
        const WORKS: &str = "--expect takes 100k, and src=5k for one combination";
        let Some((combination, number)) = text.split_once('=') else {
            return match self.for_all.replace(number_of(text, WORKS)?) {
                None => Ok(()),
                Some(_) => Err(UsageError::new(
                    "there is one number for all combinations; --expect 100k --expect src=5k names another one",
                )),
            };
        };
        let mask = mask_of(attributes, combination)?;
        if self.known.iter().any(|&(other, ..)| other == mask) {
            return Err(UsageError::new(format!(
                "the number of {combination} is there twice; leave one out"
            )));
        }
        self.known.push((mask, number_of(number, WORKS)?, Origin::Given));
        Ok(())
    }
}

impl Numbers {
    /// Returns these numbers, with what they say about all other combinations.
    pub(super) fn elements(
        &self,
        request: &PlanRequest,
        most_values: &[Option<u64>],
    ) -> Result<Elements, UsageError> {
        let name = |mask| request.name(mask);
        let elements = Elements::new(most_values, &self.known, self.for_all, name);
        let elements = elements.map_err(UsageError::new)?;
        let is_given = self.known.iter().any(|(.., origin)| *origin == Origin::Given);
        match self.for_all {
            Some(all) if is_given && elements.whole().total_cmp(&(all as f64)).is_ne() => {
                Err(UsageError::new(format!(
                    "--expect {all} contradicts the other numbers, which give {} distinct elements; leave it out, or correct the others",
                    elements.whole()
                )))
            }
            _ => Ok(elements),
        }
    }
}

/// Parses a number of distinct elements for `--expect`.
pub(super) fn parse_expected(text: &str) -> Result<u64, UsageError> {
    number_of(text, "--expect 100k works")
}

fn number_of(text: &str, works: &str) -> Result<u64, UsageError> {
    match parse_count(text) {
        Ok(number @ 1..=MOST_ELEMENTS) => Ok(number),
        Ok(number) => Err(UsageError::new(format!(
            "--expect is a number of distinct elements, at least 1 and at most 2^40, not {number}; --expect 1000 works"
        ))),
        Err(error) => Err(UsageError::new(format!("{error}; {text:?} is none ({works})"))),
    }
}

/// Most elements of a plan.
pub(super) const MOST_ELEMENTS: u64 = 1 << 40;
