//! The small languages of options: combinations, numbers, weights.

use crate::cli::UsageError;
use crate::cli::units::parse_count;

/// Names, or numbers from 1, of attributes, separated by commas; or `all`.
pub(super) fn mask_of(attributes: &[String], names: &str) -> Result<u32, UsageError> {
    if names == "all" {
        return Ok(((1_u64 << attributes.len()) - 1) as u32);
    }
    names.split(',').try_fold(0, |mask, name| {
        let number = name.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let place = attributes.iter().position(|attribute| attribute == name);
        match place.or(number.filter(|&number| number < attributes.len())) {
            Some(place) if mask >> place & 1 == 1 => Err(UsageError(format!(
                "a combination names each attribute once, and {name} is there twice in {names:?}; leave one out"
            ))),
            Some(place) => Ok(mask | 1 << place),
            None => Err(UsageError(format!(
                "the attributes are {}, not {name:?}; {} works",
                attributes.join(", "),
                attributes[0]
            ))),
        }
    })
}

pub(super) fn number_of(text: &str) -> Result<u64, UsageError> {
    match parse_count(text) {
        Ok(0) => Err(UsageError(
            "a plan is for at least one element, not 0; 100k works".into(),
        )),
        Ok(number) if number > MOST_ELEMENTS => Err(UsageError(format!(
            "a plan is for at most 2^40 elements, not {number}; 100M works"
        ))),
        Ok(number) => Ok(number),
        Err(error) => Err(UsageError(format!(
            "{error}; {text:?} is none (--n takes 100k, src=5k or max)"
        ))),
    }
}

/// Elements beyond which nothing is planned.
const MOST_ELEMENTS: u64 = 1 << 40;

pub(super) fn parse_weight(text: &str) -> Result<f64, UsageError> {
    text.parse().map_err(|_| {
        UsageError(format!(
            "a weight is a number from 0 on, such as 3 or 0.5, not {text:?}"
        ))
    })
}
