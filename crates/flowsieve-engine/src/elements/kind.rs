//! The kinds of element, and the rule that says which elements a run counts.

use super::field::{self, Attribute, Field, check_fields};
use crate::inputs::PlanError;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Most fields of a key: of two attributes that decide each other, it has one.
pub(super) const MOST_FIELDS: usize = Attribute::ALL.len() - 1;

/// A kind of element: a key, which is made of fields of a packet's headers.
///
/// The usual keys have [names](Self::named); others are written as their fields.
///
/// ```
/// use flowsieve_engine::elements::ElementKind;
///
/// assert_eq!("src,dst".parse(), Ok(ElementKind::HOST_PAIR));
/// let services: ElementKind = "dst/24,dst-port".parse()?;
/// assert_eq!(services.name(), "dst/24,dst-port");
/// # Ok::<(), flowsieve_engine::pipeline::PlanError>(())
/// ```
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct ElementKind {
    fields: [Field; MOST_FIELDS],
    length: u8,
}

/// A kind of element that has a name.
#[derive(Clone, Copy, Debug)]
pub struct NamedKind {
    /// The name on the command line and in reports.
    pub name: &'static str,
    /// Its plural in texts.
    pub plural: &'static str,
    /// A line of help.
    pub summary: &'static str,
    /// Its fields.
    pub kind: ElementKind,
}

/// The kinds of element that have names: one line each.
const KINDS: &[NamedKind] = &[
    named("host-pair", "host pairs", "Source and destination address", ElementKind::HOST_PAIR),
    named("flow", "flows", "Addresses, protocol and ports", ElementKind::FLOW),
    named("dns", "DNS triples", "Addresses and query name of DNS messages", ElementKind::DNS),
    named("src", "sources", "Source address", ElementKind::SOURCE),
    named("dst", "destinations", "Destination address", ElementKind::DESTINATION),
    #[cfg(feature = "toy")]
    named(
        "toy-service",
        "services",
        "The toy of the recipe in CONTRIBUTING.md",
        ElementKind::new(&[Attribute::Protocol, Attribute::DestinationPort]),
    ),
];

const fn named(
    name: &'static str,
    plural: &'static str,
    summary: &'static str,
    kind: ElementKind,
) -> NamedKind {
    NamedKind { name, plural, summary, kind }
}

impl NamedKind {
    /// Whether the kind is listed: tests list the toy only if they ask for it.
    #[cfg(feature = "toy")]
    fn is_listed(&self) -> bool {
        self.name != "toy-service" || std::env::var_os("FLOWSIEVE_TOY").is_some()
    }

    #[cfg(not(feature = "toy"))]
    const fn is_listed(&self) -> bool {
        let _ = self;
        true
    }
}

impl ElementKind {
    /// Source and destination address.
    pub const HOST_PAIR: Self = Self::new(&[Attribute::Source, Attribute::Destination]);

    /// Five-tuple: addresses, protocol and ports, which are 0 where the packet has none.
    pub const FLOW: Self = Self::new(&[
        Attribute::Source,
        Attribute::Destination,
        Attribute::Protocol,
        Attribute::SourcePort,
        Attribute::DestinationPort,
    ]);

    /// Source, destination and query name of a DNS message's first question.
    pub const DNS: Self =
        Self::new(&[Attribute::Source, Attribute::Destination, Attribute::Domain]);
    /// Source address.
    pub const SOURCE: Self = Self::new(&[Attribute::Source]);

    /// Destination address.
    pub const DESTINATION: Self = Self::new(&[Attribute::Destination]);

    const fn new(attributes: &[Attribute]) -> Self {
        let mut fields = [Field::whole(Attribute::Source); MOST_FIELDS];
        let mut number = 0;
        while number < attributes.len() {
            fields[number] = Field::whole(attributes[number]);
            number += 1;
        }
        Self { fields, length: number as u8 }
    }

    /// The key with these fields.
    ///
    /// # Errors
    ///
    /// There are none, or one of them follows from another.
    pub fn of_fields(fields: &[Field]) -> Result<Self, PlanError> {
        check_fields("--element", fields)?;
        let mut kind = Self::new(&[]);
        for (place, &field) in kind.fields.iter_mut().zip(fields) {
            *place = field;
            kind.length += 1;
        }
        Ok(kind)
    }

    /// The kinds that have names, in the order in which they are listed.
    pub fn named() -> impl Iterator<Item = &'static NamedKind> {
        KINDS.iter().filter(|named| named.is_listed())
    }

    fn entry(self) -> Option<&'static NamedKind> {
        KINDS.iter().find(|named| named.kind == self)
    }

    /// The fields of the key, in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields[..self.length.into()]
    }

    /// The name on the command line and in reports.
    pub fn name(self) -> Cow<'static, str> {
        match self.entry() {
            Some(named) => named.name.into(),
            None => field::names(self.fields()).into(),
        }
    }

    /// Whether a packet without ports has no such element. Flows have ports 0 then.
    pub(crate) fn needs_ports(&self) -> bool {
        *self != Self::FLOW && self.any(Attribute::is_port)
    }
}

/// For other crates of this program.
#[doc(hidden)]
impl ElementKind {
    /// All kinds that have names.
    pub const ALL: [Self; KINDS.len()] = {
        let mut all = [Self::HOST_PAIR; KINDS.len()];
        let mut number = 0;
        while number < KINDS.len() {
            all[number] = KINDS[number].kind;
            number += 1;
        }
        all
    };

    /// Number of fields.
    pub const fn arity(self) -> usize {
        self.length as usize
    }

    /// Returns its plural in texts.
    pub fn plural(self) -> Cow<'static, str> {
        match self.entry() {
            Some(named) => named.plural.into(),
            None => field::plural(self.fields()).into(),
        }
    }

    /// Names of the attributes, in order, as in reports.
    pub fn attributes(self) -> Vec<&'static str> {
        self.fields().iter().map(|field| field.column_name()).collect()
    }

    /// Number of values that each attribute can have at all, where these are few.
    pub fn most_values(self) -> Vec<Option<u64>> {
        self.fields().iter().map(|field| field.most_values()).collect()
    }

    /// Returns the field of this attribute, if the key has one.
    pub fn field(&self, attribute: Attribute) -> Option<Field> {
        self.fields().iter().copied().find(|field| field.attribute == attribute)
    }

    /// Whether the key has a field of such an attribute.
    pub fn any(&self, is: impl Fn(Attribute) -> bool) -> bool {
        self.fields().iter().any(|field| is(field.attribute))
    }

    /// Whether the key has a name of a DNS message.
    pub fn has_name(&self) -> bool {
        self.any(Attribute::is_name)
    }

    /// Whether source and destination may be exchanged: the key has both ends alike.
    pub fn is_symmetric(&self) -> bool {
        let [source, destination] =
            [Attribute::Source, Attribute::Destination].map(|attribute| self.field(attribute));
        let [from, to] = [Attribute::SourcePort, Attribute::DestinationPort]
            .map(|attribute| self.field(attribute));
        let has_ends = source.zip(destination).is_some_and(|(a, b)| a.prefix == b.prefix);
        has_ends && from.is_some() == to.is_some()
    }
}

impl Default for ElementKind {
    fn default() -> Self {
        Self::HOST_PAIR
    }
}

impl fmt::Display for ElementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl fmt::Debug for ElementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ElementKind({self})")
    }
}

impl FromStr for ElementKind {
    type Err = PlanError;

    /// Reads the name of a kind, or fields separated by commas.
    fn from_str(text: &str) -> Result<Self, PlanError> {
        if let Some(named) = KINDS.iter().find(|named| named.name == text) {
            return Ok(named.kind);
        }
        let fields: Result<Vec<Field>, PlanError> = text.split(',').map(str::parse).collect();
        match fields {
            Ok(fields) => Self::of_fields(&fields),
            // A single word may have been meant as a name.
            Err(error) if text.contains([',', '/']) => Err(error),
            Err(_) => {
                let names: Vec<&str> = Self::named().map(|named| named.name).collect();
                let meant = match text {
                    "sport" | "srcport" => "did you mean src-port? ",
                    "dport" | "dstport" => "did you mean dst-port? ",
                    "source" => "did you mean src? ",
                    "destination" => "did you mean dst? ",
                    "qname" | "query" => "did you mean domain? ",
                    _ => "",
                };
                Err(PlanError::new(format!(
                    "there is no element {text:?}; {meant}there are {}, and keys such as src/24,dst-port, of src, dst, src-port, dst-port, proto, vlan, domain and domain2",
                    names.join(", ")
                )))
            }
        }
    }
}

/// Which elements are counted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ElementRule {
    /// The kind.
    pub kind: ElementKind,
    /// Both directions are one element: the smaller (address, port) comes first.
    pub undirected: bool,
    /// Count DNS queries only.
    pub queries_only: bool,
}

impl From<ElementKind> for ElementRule {
    fn from(kind: ElementKind) -> Self {
        Self { kind, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for named in KINDS {
            assert_eq!(named.name.parse(), Ok(named.kind));
            assert_eq!(named.kind.name(), named.name);
            assert_eq!(field::names(named.kind.fields()).parse(), Ok(named.kind));
        }
        for key in ["src/24,dst-port", "domain,vlan", "proto", "dst,src"] {
            let kind: Result<ElementKind, PlanError> = key.parse();
            assert_eq!(kind.map(|kind| kind.name().into_owned()), Ok(key.to_owned()));
        }
        for wrong in ["", "pairs", "src,", "src,src/24", "domain,domain2", "src/99,dst"] {
            assert!(wrong.parse::<ElementKind>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ends_that_are_alike_may_be_exchanged() {
        for (key, is_symmetric) in [
            ("host-pair", true),
            ("flow", true),
            ("dns", true),
            ("src", false),
            ("src/24,dst/24", true),
            ("src/24,dst", false),
            ("src,dst,dst-port", false),
        ] {
            let kind: Result<ElementKind, PlanError> = key.parse();
            assert_eq!(kind.map(|kind| kind.is_symmetric()), Ok(is_symmetric), "{key}");
        }
    }
}
