//! Which types of dnstap messages are records.

/// A set of dnstap's types of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DnstapTypes(u16);

impl DnstapTypes {
    /// All types, unknown ones too.
    #[doc(hidden)]
    pub const ALL: Self = Self(u16::MAX);

    /// Names of the kinds, which say who talks with whom. Each has queries, with the odd number of a
    /// pair, and responses.
    #[doc(hidden)]
    pub const NAMES: [&str; 7] =
        ["auth", "resolver", "client", "forwarder", "stub", "tool", "update"];

    /// Returns the types of a name: a kind such as `client`, one type such as `client-query`, or
    /// `all`.
    pub fn of_name(name: &str) -> Option<Self> {
        if name == "all" {
            return Some(Self::ALL);
        }
        let (kind, bits) = match name.rsplit_once('-') {
            Some((kind, "query")) => (kind, 1),
            Some((kind, "response")) => (kind, 2),
            _ => (name, 3),
        };
        let place = Self::NAMES.iter().position(|known| *known == kind)?;
        Some(Self(bits << (2 * place + 1)))
    }

    /// Returns the names of the types, with commas between them.
    pub(super) fn names(self) -> String {
        if self == Self::ALL {
            return "all".to_owned();
        }
        let names = Self::NAMES.iter().enumerate().filter_map(|(place, name)| {
            Some(match self.0 >> (2 * place + 1) & 3 {
                0 => return None,
                1 => format!("{name}-query"),
                2 => format!("{name}-response"),
                _ => (*name).to_owned(),
            })
        });
        names.collect::<Vec<_>>().join(",")
    }

    /// Returns the union of two sets.
    #[must_use]
    #[doc(hidden)]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn has(self, number: u64) -> bool {
        match number {
            1..16 => self.0 >> number & 1 == 1,
            _ => self == Self::ALL,
        }
    }
}

impl Default for DnstapTypes {
    /// Messages between a server and its clients: clients of a resolver, and resolvers that ask an
    /// authoritative server.
    fn default() -> Self {
        Self(0b0110_0110)
    }
}
