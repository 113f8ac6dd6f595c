//! A filter as a flat list of tests, each of which names the next test.

use super::dns_test::DnsTest;
use crate::decode::Shim;
use crate::decode::ip::{SCTP, TCP, UDP};
use std::ops::Range;

/// The ends of a packet that a test is about.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Direction {
    Source,
    Destination,
    #[default]
    Either,
    Both,
}

/// A set of network layers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Networks(u8);

impl Networks {
    pub(super) const IPV4: Self = Self(1);
    pub(super) const IPV6: Self = Self(2);
    pub(super) const ARP: Self = Self(4);
    pub(super) const REVERSE_ARP: Self = Self(8);
    pub(super) const IP: Self = Self(1 | 2);
    /// The layers with IPv4 addresses.
    pub(super) const WITH_IPV4_ADDRESSES: Self = Self(1 | 4 | 8);

    /// Returns whether a layer is one of these.
    #[inline]
    pub(super) const fn has(self, layer: Self) -> bool {
        self.0 & layer.0 != 0
    }
}

/// A test of a packet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// The network layer is one of these.
    Network(Networks),
    /// The network layer is one of these and carries a protocol, behind extension headers or as one
    /// of them.
    Protocol { networks: Networks, number: u32 },
    /// An IPv4 address is in a network.
    Address4 { networks: Networks, direction: Direction, network: u32, mask: u32 },
    /// An IPv6 address is in a network.
    Address6 { direction: Direction, network: u128, mask: u128 },
    /// A port is in a range.
    Port { protocols: Protocols, direction: Direction, first: u16, last: u16 },
    /// An Ethernet address is this one.
    Ether { direction: Direction, address: [u8; 6] },
    /// The frame is sent to all.
    Broadcast,
    /// The frame is sent to a group, or to all.
    Multicast,
    /// An `EtherType` or service access point precedes the network layer.
    EtherType(u32),
    /// A VLAN tag, an MPLS label or a PPP-over-Ethernet session precedes it, perhaps with this
    /// number.
    Label(Shim, Option<u32>),
    /// A DNS message meets this test.
    Dns(DnsTest),
    /// Two values compare as required.
    Relation(Relation),
}

/// The transport protocols that a port may belong to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Protocols(u8);

/// The bit of each protocol that has ports. A table, since traffic mixes protocols at random, and a
/// mispredicted branch costs more than everything else.
static BITS: [u8; 256] = {
    let mut table = [0; 256];
    table[TCP as usize] = 1;
    table[UDP as usize] = 2;
    table[SCTP as usize] = 4;
    table
};

impl Protocols {
    pub(super) const ALL: Self = Self(7);

    /// Returns the set of one protocol; empty if it has no ports.
    pub(super) fn only(number: u8) -> Self {
        Self(BITS[usize::from(number)])
    }

    #[inline]
    pub(super) fn has(self, number: u8) -> bool {
        self.0 & BITS[usize::from(number)] != 0
    }
}

/// A comparison of two results of arithmetic.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Relation {
    pub(super) comparison: Comparison,
    /// The headers that bytes are read from: the comparison fails if the packet lacks one of them.
    pub(super) headers: Range<u32>,
    /// The steps that leave both values on the stack.
    pub(super) steps: Range<u32>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    #[inline]
    pub(super) fn holds(self, left: u32, right: u32) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

/// A header that offsets are relative to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Header {
    /// The frame, from its first byte.
    Frame,
    /// A network layer.
    Network(Networks),
    /// The transport layer of IP.
    Upper { networks: Networks, protocol: u8 },
}

/// A step of arithmetic on a stack.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    Constant(u32),
    /// The length on the wire.
    Length,
    /// Replaces an offset by the number of `size` bytes there.
    Load {
        header: Header,
        size: u8,
    },
    Negate,
    Binary(Binary),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

impl Binary {
    /// Returns the result in 32 bits without signs; `None` for a division by zero.
    #[inline]
    pub(super) fn apply(self, left: u32, right: u32) -> Option<u32> {
        Some(match self {
            Self::Add => left.wrapping_add(right),
            Self::Subtract => left.wrapping_sub(right),
            Self::Multiply => left.wrapping_mul(right),
            Self::Divide => left.checked_div(right)?,
            Self::Modulo => left.checked_rem(right)?,
            Self::And => left & right,
            Self::Or => left | right,
            Self::Xor => left ^ right,
            Self::ShiftLeft => left.checked_shl(right).unwrap_or(0),
            Self::ShiftRight => left.checked_shr(right).unwrap_or(0),
        })
    }
}

/// Most values that a comparison has on its stack.
pub(super) const STACK_MAX: usize = 16;

/// A piece of an expression in postfix order.
pub(super) enum Node {
    Test(Test),
    Not,
    And,
    Or,
}

/// A test, and which test is next after either answer. Tests go forward only.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) test: Test,
    pub(super) yes: u32,
    pub(super) no: u32,
}

/// As the next test: the packet matches.
pub(super) const ACCEPT: u32 = u32::MAX;
/// As the next test: the packet does not match.
pub(super) const REJECT: u32 = u32::MAX - 1;

/// A compiled filter.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) headers: Vec<Header>,
    pub(super) steps: Vec<Step>,
}

/// Placeholder for the number of the next test: the operand on the right, which was emitted just before.
const NEXT: u32 = u32::MAX - 2;

impl Program {
    /// Emits the tests of an expression from the last to the first, without recursion.
    pub(super) fn new(postfix: Vec<Node>, headers: Vec<Header>, steps: Vec<Step>) -> Self {
        let mut ops: Vec<Op> = Vec::new();
        // Continuations of operands, counted from the end since the last operand is emitted first.
        let mut waiting = vec![(ACCEPT, REJECT)];
        for node in postfix.into_iter().rev() {
            let Some((yes, no)) = waiting.pop() else { break };
            let latest = ops.len().saturating_sub(1) as u32;
            let place = |exit| if exit == NEXT { latest } else { exit };
            let (yes, no) = (place(yes), place(no));
            match node {
                Node::Test(test) => ops.push(Op { test, yes, no }),
                Node::Not => waiting.push((no, yes)),
                Node::And => waiting.extend([(NEXT, no), (yes, no)]),
                Node::Or => waiting.extend([(yes, NEXT), (yes, no)]),
            }
        }
        ops.reverse();
        let last = ops.len().saturating_sub(1) as u32;
        for op in &mut ops {
            for exit in [&mut op.yes, &mut op.no] {
                if *exit < REJECT {
                    *exit = last - *exit;
                }
            }
        }
        Self { ops, headers, steps }
    }
}
