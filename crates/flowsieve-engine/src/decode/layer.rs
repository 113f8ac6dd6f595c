//! The layers of a frame, and the step from one to the next.

use super::Skip;
use super::ieee80211::Form;
use crate::trace::LinkType;

/// The layer that begins at a position of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Layer {
    /// The layer of a link type.
    Link(LinkType),
    /// An Ethernet frame, from its destination address on.
    Ethernet,
    /// The payload of an `EtherType`.
    EtherType(u16),
    /// An 802.2 LLC header.
    Llc,
    /// The payload of an OSI network layer protocol identifier.
    Nlpid(u8),
    /// An MPLS label stack entry.
    Mpls,
    /// A network service header.
    Nsh,
    /// A PPP frame, with or without address and control field.
    Ppp,
    /// A Cisco HDLC frame.
    CiscoHdlc,
    /// An HDLC frame of either kind, as on packet-over-SONET links.
    Hdlc,
    /// A PPP-over-Ethernet session header.
    PppOe,
    /// An 802.11 frame.
    Ieee80211(Form),
    /// An IP header of the version that its first nibble says.
    Ip,
    /// An IPv4 header.
    Ipv4,
    /// An IPv6 header.
    Ipv6,
}

/// The next layer and its bytes, or why there is none.
pub(super) type Step<'a> = Result<(Layer, &'a [u8]), Skip>;
