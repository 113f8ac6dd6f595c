//! What is asked: the keys that are ranked, and what is distinct about each.

use crate::pipeline::PlanError;
use std::fmt;
use std::str::FromStr;

/// A property of a packet.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Attribute {
    /// Source address.
    Source,
    /// Destination address.
    Destination,
    /// Protocol number behind all extension headers.
    Protocol,
    /// Source port.
    SourcePort,
    /// Destination port.
    DestinationPort,
    /// Name that a DNS message asks for.
    Domain,
    /// The part of that name that somebody registered: the public suffix and one label more.
    RegisteredDomain,
}

impl Attribute {
    /// All of them.
    #[doc(hidden)]
    pub const ALL: [Self; 7] = [
        Self::Source,
        Self::Destination,
        Self::Protocol,
        Self::SourcePort,
        Self::DestinationPort,
        Self::Domain,
        Self::RegisteredDomain,
    ];

    /// The name in the command line.
    #[doc(hidden)]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "src",
            Self::Destination => "dst",
            Self::Protocol => "proto",
            Self::SourcePort => "src-port",
            Self::DestinationPort => "dst-port",
            Self::Domain => "domain",
            Self::RegisteredDomain => "domain2",
        }
    }

    /// Whether it is an address.
    pub(crate) const fn is_address(self) -> bool {
        matches!(self, Self::Source | Self::Destination)
    }

    /// Whether it is a name in a DNS message.
    pub(crate) const fn is_name(self) -> bool {
        matches!(self, Self::Domain | Self::RegisteredDomain)
    }

    /// Whether it is a port.
    pub(crate) const fn is_port(self) -> bool {
        matches!(self, Self::SourcePort | Self::DestinationPort)
    }

    /// What a person calls several of them.
    const fn plural(self) -> &'static str {
        match self {
            Self::Source => "sources",
            Self::Destination => "destinations",
            Self::Protocol => "protocols",
            Self::SourcePort => "source ports",
            Self::DestinationPort => "destination ports",
            Self::Domain => "domains",
            Self::RegisteredDomain => "registered domains",
        }
    }
}

/// An attribute, or the leading bits of an address.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Field {
    /// The attribute.
    pub attribute: Attribute,
    /// Leading bits of an IPv4 address, 1 to 32; IPv6 has twice as many, as a site's network is
    /// usually a /24 there and a /48 here. `None` is the whole address, or no address.
    pub prefix: Option<u8>,
}

impl Field {
    /// The whole attribute.
    #[doc(hidden)]
    pub const fn of(attribute: Attribute) -> Self {
        Self { attribute, prefix: None }
    }

    /// What a person calls several of them.
    fn plural(self) -> String {
        let plural = self.attribute.plural();
        match self.prefix {
            Some(bits) => format!("{plural}/{bits}"),
            None => plural.to_owned(),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.attribute.name())?;
        match self.prefix {
            Some(bits) => write!(f, "/{bits}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Field {
    type Err = PlanError;

    /// Reads `src`, `dst/24`, `dst-port`; underscores do for hyphens.
    fn from_str(text: &str) -> Result<Self, PlanError> {
        let (name, bits) = match text.split_once('/') {
            Some((name, bits)) => (name, Some(bits)),
            None => (text, None),
        };
        let hyphens = name.replace('_', "-");
        let mut all = Attribute::ALL.into_iter();
        let Some(attribute) = all.find(|attribute| attribute.name() == hyphens) else {
            return Err(PlanError::new(format!(
                "there is no attribute {name:?}; there are src, dst, src-port, dst-port, proto, domain and domain2, and prefixes such as src/24"
            )));
        };
        let Some(bits) = bits else {
            return Ok(Self::of(attribute));
        };
        if !attribute.is_address() {
            return Err(PlanError::new(format!("{name} has no prefixes; src/24 and dst/16 have")));
        }
        match bits.parse() {
            Ok(bits @ 1..=32) => Ok(Self { attribute, prefix: Some(bits) }),
            _ => Err(PlanError::new(format!(
                "a prefix has 1 to 32 bits of an IPv4 address, not {bits:?} (IPv6 has twice as many); {name}/24 works"
            ))),
        }
    }
}

/// For each value of some fields, how many distinct values of others there are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Question {
    by: Vec<Field>,
    distinct: Vec<Field>,
}

impl Default for Question {
    /// Which sources have the most distinct destinations.
    fn default() -> Self {
        Self {
            by: vec![Field::of(Attribute::Source)],
            distinct: vec![Field::of(Attribute::Destination)],
        }
    }
}

impl Question {
    /// The question with these keys, and what is distinct about them.
    ///
    /// # Errors
    ///
    /// Fields that are missing, stand twice, or decide each other.
    pub fn new(by: Vec<Field>, distinct: Vec<Field>) -> Result<Self, PlanError> {
        for (option, fields) in [("--by", &by), ("--distinct", &distinct)] {
            if fields.is_empty() {
                return Err(PlanError::new(format!("{option} needs an attribute; src works")));
            }
            for (number, field) in fields.iter().enumerate() {
                let same = |other: &&Field| {
                    let both_names = other.attribute.is_name() && field.attribute.is_name();
                    other.attribute == field.attribute || both_names
                };
                if let Some(other) = fields[..number].iter().find(same) {
                    return Err(PlanError::new(format!(
                        "{option} has {other} and {field}, and one decides the other; leave one out"
                    )));
                }
            }
        }
        let is_decided = |field: &Field| {
            by.iter().any(|key| {
                let same = key.attribute == field.attribute;
                let of_name = key.attribute == Attribute::Domain && field.attribute.is_name();
                let is_finer = key
                    .prefix
                    .is_none_or(|bits| field.prefix.is_some_and(|coarser| coarser <= bits));
                (same && is_finer) || of_name
            })
        };
        if distinct.iter().all(is_decided) {
            let [by, distinct] = [&by, &distinct].map(|fields| names(fields));
            return Err(PlanError::new(format!(
                "each {by} has one {distinct}; ask for something else with --distinct, such as dst"
            )));
        }
        Ok(Self { by, distinct })
    }

    /// The keys.
    #[doc(hidden)]
    pub fn by(&self) -> &[Field] {
        &self.by
    }

    /// What is distinct about them.
    #[doc(hidden)]
    pub fn distinct(&self) -> &[Field] {
        &self.distinct
    }

    /// Whether any of the fields is such an attribute.
    pub(super) fn any(&self, is: impl Fn(Attribute) -> bool) -> bool {
        let mut fields = self.by.iter().chain(&self.distinct);
        fields.any(|field| is(field.attribute))
    }

    /// Whether it is about DNS messages.
    #[doc(hidden)]
    pub fn is_about_dns(&self) -> bool {
        self.any(Attribute::is_name)
    }

    /// The names of the key's fields, as in the command line.
    #[doc(hidden)]
    pub fn by_names(&self) -> String {
        names(&self.by)
    }

    /// The names of the other fields.
    #[doc(hidden)]
    pub fn distinct_names(&self) -> String {
        names(&self.distinct)
    }

    /// What a person calls several keys.
    #[doc(hidden)]
    pub fn keys_plural(&self) -> String {
        plural(&self.by)
    }

    /// What a person calls several of the others.
    #[doc(hidden)]
    pub fn others_plural(&self) -> String {
        plural(&self.distinct)
    }
}

fn names(fields: &[Field]) -> String {
    let names: Vec<String> = fields.iter().map(ToString::to_string).collect();
    names.join(",")
}

/// `sources`, or `(src, dst)` pairs and the like.
fn plural(fields: &[Field]) -> String {
    if let [field] = fields {
        return field.plural();
    }
    let names: Vec<String> = fields.iter().map(ToString::to_string).collect();
    format!("({})", names.join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    fn fields(text: &str) -> Result<Vec<Field>, PlanError> {
        text.split(',').map(str::parse).collect()
    }

    fn question(by: &str, distinct: &str) -> Result<Question, PlanError> {
        Question::new(fields(by)?, fields(distinct)?)
    }

    #[test]
    fn fields_are_read_as_they_are_written() {
        for attribute in Attribute::ALL {
            let field = Field::of(attribute);
            assert_eq!(field.to_string().parse(), Ok(field));
        }
        let prefix: Field = "dst/16".parse().unwrap();
        assert_eq!(prefix.prefix, Some(16));
        assert_eq!(prefix.to_string(), "dst/16");
        assert_eq!("dst_port".parse::<Field>(), "dst-port".parse());
        for wrong in ["", "source", "src/", "src/0", "src/33", "src/x", "dst-port/8", "src/24/24"] {
            assert!(wrong.parse::<Field>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn questions_that_answer_themselves_are_refused() {
        for (by, distinct) in [
            ("src", "dst"),
            ("src/24", "src"),
            ("src/24", "src/25"),
            ("domain2", "domain"),
            ("src,dst", "dst-port"),
            ("src", "src,dst"),
            ("domain2", "src"),
        ] {
            assert!(question(by, distinct).is_ok(), "{by} {distinct}");
        }
        for (by, distinct) in [
            ("src", "src"),
            ("src", "src/24"),
            ("src/24", "src/24"),
            ("src/24", "src/16"),
            ("domain", "domain2"),
            ("src,src/24", "dst"),
            ("src", "domain,domain2"),
            ("src,dst", "dst"),
        ] {
            assert!(question(by, distinct).is_err(), "{by} {distinct}");
        }
    }
}
