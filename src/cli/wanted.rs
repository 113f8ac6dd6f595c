//! Parsers of options about combinations of attributes, for `plan` and `count`: wanted combinations,
//! numbers of values, cuts and weights.

use super::UsageError;
use super::units::parse_count;
use flowsieve::planner::{Elements, Origin, PlanRequest, Wanted};

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
