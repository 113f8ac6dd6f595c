//! Tests of DNS messages.

use crate::decode::DnsMessage;

/// A test of a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum DnsTest {
    /// There is a message.
    Any,
    Query,
    Response,
    /// The type of the first question.
    Type(u16),
    /// The code of a response.
    Code(u8),
    /// The name of the first question in wire form, or with `below` any name below it.
    Name {
        name: Vec<u8>,
        below: bool,
    },
}

/// The known parts of a message: a log may lack some.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownMessage<'a> {
    pub(super) is_response: bool,
    pub(super) question_type: Option<u16>,
    pub(super) code: Option<u8>,
    pub(super) name: Option<&'a [u8]>,
}

impl<'a> From<DnsMessage<'a>> for KnownMessage<'a> {
    fn from(message: DnsMessage<'a>) -> Self {
        Self {
            is_response: message.is_response,
            question_type: Some(message.question_type),
            code: Some(message.response_code),
            name: Some(message.name),
        }
    }
}

impl DnsTest {
    /// Whether a message meets the test; `None` if that is not known.
    pub(super) fn is(&self, message: KnownMessage<'_>) -> Option<bool> {
        Some(match self {
            Self::Any => true,
            Self::Query => !message.is_response,
            Self::Response => message.is_response,
            Self::Type(wanted) => message.question_type? == *wanted,
            Self::Code(_) if !message.is_response => false,
            Self::Code(wanted) => message.code? == *wanted,
            Self::Name { name, below: false } => message.name? == name.as_slice(),
            Self::Name { name, below: true } => is_below(message.name?, name),
        })
    }
}

/// Whether a name in wire form has labels before those of another.
fn is_below(mut name: &[u8], parent: &[u8]) -> bool {
    while name.len() > parent.len() {
        let label = usize::from(name[0]);
        name = name.get(1 + label..).unwrap_or_default();
        if name == parent {
            return true;
        }
    }
    false
}
