//! Uses a filter without captures: membership, a query by one attribute, and the number of
//! elements.
//!
//!     cargo run --example filter_alone

use flowsieve::filters::hashing::Digester;
use flowsieve::filters::{
    ElementDigests, FilterKind, FilterSpec, Pattern, PatternAnswer, Sighting, Sizing,
};
use std::error::Error;

/// Inserts visits of a user and a page into a filter. Returns the estimated number of distinct
/// visits, whether the last visit was new, and whether this user was seen on any page.
pub(crate) fn visits(
    visits: &[(&str, &str)],
    user: &str,
) -> Result<(f64, bool, bool), Box<dyn Error>> {
    let sizing = Sizing::Memory { bytes: 4 << 10, expected: Some(100) };
    let mut filter = FilterSpec::new(FilterKind::Cmdbf, 2, sizing)?.build();
    let digester = Digester::new(0);
    let mut last = Sighting::Repeat;
    for (user, page) in visits {
        let attributes = [digester.digest(user.as_bytes()), digester.digest(page.as_bytes())];
        last = filter.insert(ElementDigests {
            whole: digester.digest(format!("{user}\0{page}").as_bytes()),
            attributes: &attributes,
        });
    }
    let pattern =
        Pattern { whole: None, attributes: &[Some(digester.digest(user.as_bytes())), None] };
    let parts = filter.as_multi_attribute().ok_or("this filter knows no attributes")?;
    let seen = parts.contains_where(pattern) != PatternAnswer::Absent;
    let count = filter.distinct().ok_or("this filter has no estimate")?;
    Ok((count.distinct, last == Sighting::First, seen))
}

/// Prints the answers.
fn main() -> Result<(), Box<dyn Error>> {
    let log = [("ann", "/"), ("bob", "/"), ("ann", "/news"), ("ann", "/")];
    let (count, new, seen) = visits(&log, "bob")?;
    println!("{count:.1} different visits; the last one was new: {new}; bob was seen: {seen}");
    Ok(())
}
