//! The kinds of element, and the rule that says which elements a run counts.

/// What is counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ElementKind {
    /// Source and destination address.
    #[default]
    HostPair,
    /// Five-tuple: addresses, protocol and ports (0 where there are none).
    Flow,
    /// Source, destination and query name of a DNS message's first question.
    Dns,
    /// Source address.
    Source,
    /// Destination address.
    Destination,
}

impl ElementKind {
    /// All kinds.
    #[doc(hidden)]
    pub const ALL: [Self; 5] =
        [Self::HostPair, Self::Flow, Self::Dns, Self::Source, Self::Destination];

    /// The name in the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HostPair => "host-pair",
            Self::Flow => "flow",
            Self::Dns => "dns",
            Self::Source => "src",
            Self::Destination => "dst",
        }
    }

    /// What a person calls several of them.
    #[doc(hidden)]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::HostPair => "host pairs",
            Self::Flow => "flows",
            Self::Dns => "DNS triples",
            Self::Source => "sources",
            Self::Destination => "destinations",
        }
    }

    /// Names of the attributes, in order, as in reports.
    #[doc(hidden)]
    pub const fn attributes(self) -> &'static [&'static str] {
        match self {
            Self::HostPair => &["src", "dst"],
            Self::Flow => &["src", "dst", "proto", "src_port", "dst_port"],
            Self::Dns => &["src", "dst", "domain"],
            Self::Source => &["src"],
            Self::Destination => &["dst"],
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
    /// Of DNS messages only the queries.
    pub queries_only: bool,
}

impl From<ElementKind> for ElementRule {
    fn from(kind: ElementKind) -> Self {
        Self { kind, ..Self::default() }
    }
}
