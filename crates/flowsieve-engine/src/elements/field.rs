//! The fields that keys are made of.

use crate::inputs::PlanError;
use std::fmt;
use std::str::FromStr;

named_enum! {
    /// A property of a packet.
    #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
    pub enum Attribute {
        /// Source address.
        Source = "src",
        /// Destination address.
        Destination = "dst",
        /// Protocol number after all extension headers.
        Protocol = "proto",
        /// Source port.
        SourcePort = "src-port",
        /// Destination port.
        DestinationPort = "dst-port",
        /// Name that a DNS message asks for.
        Domain = "domain",
        /// The registered part of that name: the public suffix and one more label.
        RegisteredDomain = "domain2",
        /// Identifier of the outermost VLAN tag.
        Vlan = "vlan",
    }
}

impl Attribute {
    /// Returns the name in results.
    const fn column_name(self) -> &'static str {
        match self {
            Self::SourcePort => "src_port",
            Self::DestinationPort => "dst_port",
            _ => self.name(),
        }
    }

    /// Returns the name of several values in text.
    const fn plural(self) -> &'static str {
        match self {
            Self::Source => "sources",
            Self::Destination => "destinations",
            Self::Protocol => "protocols",
            Self::SourcePort => "source ports",
            Self::DestinationPort => "destination ports",
            Self::Domain => "domains",
            Self::RegisteredDomain => "registered domains",
            Self::Vlan => "VLANs",
        }
    }

    /// Returns whether it is an address.
    #[doc(hidden)]
    pub const fn is_address(self) -> bool {
        matches!(self, Self::Source | Self::Destination)
    }

    /// Returns whether it is a name in a DNS message.
    #[doc(hidden)]
    pub const fn is_name(self) -> bool {
        matches!(self, Self::Domain | Self::RegisteredDomain)
    }

    /// Returns whether it is a port.
    #[doc(hidden)]
    pub const fn is_port(self) -> bool {
        matches!(self, Self::SourcePort | Self::DestinationPort)
    }
}

/// An attribute, or the leading bits of an address.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Field {
    /// The attribute.
    pub attribute: Attribute,
    /// Leading bits of an IPv4 address, 1 to 32. IPv6 has twice as many, because the network of a
    /// site is usually a /24 in IPv4 and a /48 in IPv6. `None` is the whole address, or no address.
    pub prefix: Option<u8>,
}

/// Names of prefixes in results, by address and number of bits.
static PREFIX_NAMES: [[&str; 32]; 2] = {
    macro_rules! names {
        ($($bits:literal)*) => {
            [[$(concat!("src/", $bits)),*], [$(concat!("dst/", $bits)),*]]
        };
    }
    names!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
};

impl Field {
    /// Returns the field of the whole attribute.
    #[doc(hidden)]
    pub const fn whole(attribute: Attribute) -> Self {
        Self { attribute, prefix: None }
    }

    /// Returns the name in results.
    #[doc(hidden)]
    pub fn column_name(self) -> &'static str {
        match self.prefix {
            Some(bits @ 1..=32) => {
                let address = usize::from(self.attribute == Attribute::Destination);
                PREFIX_NAMES[address][usize::from(bits) - 1]
            }
            _ => self.attribute.column_name(),
        }
    }

    /// Returns the number of values that the field can have, where these are few.
    pub(super) const fn most_values(self) -> Option<u64> {
        match (self.attribute, self.prefix) {
            (Attribute::Protocol, _) => Some(1 << 8),
            (Attribute::SourcePort | Attribute::DestinationPort, _) => Some(1 << 16),
            // And none.
            (Attribute::Vlan, _) => Some((1 << 12) + 1),
            (_, Some(bits @ 1..=16)) => Some((1 << bits) + (1 << (2 * bits))),
            _ => None,
        }
    }

    /// Returns whether the value of this field follows from that of `key`.
    fn is_decided_by(self, key: Self) -> bool {
        let has_bits =
            key.prefix.is_none_or(|bits| self.prefix.is_some_and(|coarser| coarser <= bits));
        (key.attribute == self.attribute && has_bits)
            || (key.attribute == Attribute::Domain && self.attribute.is_name())
    }
}

/// Returns the name of several values of fields in text: `sources`, or `(src, dst)`.
pub(crate) fn plural(fields: &[Field]) -> String {
    match fields {
        [Field { attribute, prefix: None }] => attribute.plural().to_owned(),
        [Field { attribute, prefix: Some(bits) }] => format!("{}/{bits}", attribute.plural()),
        _ => format!("({})", names(fields).replace(',', ", ")),
    }
}

/// Returns the fields as on the command line: `src/24,dst-port`.
pub(crate) fn names(fields: &[Field]) -> String {
    let names: Vec<String> = fields.iter().map(ToString::to_string).collect();
    names.join(",")
}

/// Checks that there are fields, and that none follows from another one. `option` has them on the
/// command line.
///
/// # Errors
///
/// The sentence that says which fields do not go together.
pub(crate) fn check_fields(option: &str, fields: &[Field]) -> Result<(), PlanError> {
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
    Ok(())
}

/// Returns whether all of these fields follow from those of `key`.
pub(crate) fn all_decided(fields: &[Field], key: &[Field]) -> bool {
    fields.iter().all(|field| key.iter().any(|&key| field.is_decided_by(key)))
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
                "there is no attribute {name:?}; there are src, dst, src-port, dst-port, proto, domain, domain2 and vlan, and prefixes such as src/24"
            )));
        };
        let Some(bits) = bits else { return Ok(Self::whole(attribute)) };
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    #[test]
    fn fields_are_read_as_they_are_written() {
        for attribute in Attribute::ALL {
            let field = Field::whole(attribute);
            assert_eq!(field.to_string().parse(), Ok(field));
            assert_eq!(field.column_name().parse(), Ok(field));
        }
        for text in ["src/1", "dst/16", "dst/32"] {
            let prefix: Field = text.parse().unwrap();
            assert_eq!((prefix.to_string().as_str(), prefix.column_name()), (text, text));
        }
        assert_eq!("dst_port".parse::<Field>(), "dst-port".parse());
        for wrong in ["", "source", "src/", "src/0", "src/33", "src/x", "dst-port/8", "src/24/24"] {
            assert!(wrong.parse::<Field>().is_err(), "{wrong}");
        }
    }
}
