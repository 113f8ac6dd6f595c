//! Why a frame yields no IP packet, or an IP packet no DNS message.

use crate::trace::LinkType;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// First code of the unsupported link types; the codes below it are fieldless reasons.
const LINK_CODES: u32 = 256;

/// Declares the enum, its names, phrases and codes from one table, so that they cannot drift apart.
macro_rules! skips {
    ($($(#[$doc:meta])* $variant:ident = $code:literal $name:literal $words:literal $has_ip:literal,)*) => {
        /// Why a frame yields no IP packet, or an IP packet no element.
        #[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
        #[serde(into = "u32", try_from = "u32")]
        #[non_exhaustive]
        pub enum Skip {
            $($(#[$doc])* $variant,)*
            /// The link type is not one that is decoded.
            UnsupportedLink(LinkType),
        }

        impl Skip {
            /// All reasons but the unsupported link types.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The reason's name in results, in lower snake case.
            pub fn name(self) -> Cow<'static, str> {
                match self {
                    $(Self::$variant => Cow::Borrowed($name),)*
                    Self::UnsupportedLink(link) => format!("link_type_{}", link.words()).into(),
                }
            }

            /// The packets with this reason, as people name them behind their number:
            /// `3 DNS responses`.
            pub fn words(self) -> Cow<'static, str> {
                match self {
                    $(Self::$variant => Cow::Borrowed($words),)*
                    Self::UnsupportedLink(link) => format!("of the link type {}", link.words()).into(),
                }
            }

            /// Whether the packet's IP header was readable, and only a later layer was not.
            pub fn has_ip(self) -> bool {
                match self {
                    $(Self::$variant => $has_ip,)*
                    Self::UnsupportedLink(_) => false,
                }
            }

        }

        /// Below 256 for the reasons without a field, 256 plus the link type for the others.
        impl From<Skip> for u32 {
            fn from(skip: Skip) -> Self {
                match skip {
                    $(Skip::$variant => $code,)*
                    Skip::UnsupportedLink(link) => LINK_CODES + Self::from(link.0),
                }
            }
        }

        impl TryFrom<u32> for Skip {
            type Error = &'static str;

            fn try_from(code: u32) -> Result<Self, Self::Error> {
                match code {
                    $($code => Ok(Self::$variant),)*
                    _ => {
                        let link = code.checked_sub(LINK_CODES);
                        let link = link.and_then(|link| u16::try_from(link).ok());
                        link.map(LinkType).map(Self::UnsupportedLink).ok_or("unknown reason")
                    }
                }
            }
        }
    };
}

skips! {
    /// The captured bytes end before the end of the fixed IP header.
    CutShort = 1 "cut_short" "cut short before the end of the IP header" false,
    /// An address resolution message (ARP, RARP).
    Arp = 2 "arp" "ARP" false,
    /// An `EtherType` that is neither IP nor known to carry it.
    NotIpEthertype = 3 "not_ip_ethertype" "with an EtherType other than IP" false,
    /// An 802.2 LLC frame of another protocol (spanning tree, IS-IS, `NetBIOS` and the like).
    NotIpLlc = 4 "not_ip_llc" "LLC frames of another protocol" false,
    /// A PPP frame of another protocol (link control, authentication, compressed headers).
    NotIpPpp = 5 "not_ip_ppp" "PPP frames of another protocol" false,
    /// Any other carrier that says it carries another protocol.
    NotIp = 6 "not_ip" "of another protocol than IP" false,
    /// An 802.11 management or control frame, or one without data.
    WlanNoData = 7 "wlan_no_data" "Wi-Fi frames without data" false,
    /// The contents of the frame are encrypted.
    Encrypted = 8 "encrypted" "encrypted below IP" false,
    /// A later piece of a frame that was fragmented below IP.
    LinkFragment = 9 "link_fragment" "later fragments of frames" false,
    /// A link or tunnel header that contradicts itself.
    BadLinkHeader = 10 "bad_link_header" "with a malformed link or tunnel header" false,
    /// The announced IP header has another version, or impossible lengths.
    BadIpHeader = 11 "bad_ip_header" "with a malformed IP header" false,
    /// More nested headers than are followed.
    TooDeep = 12 "too_deep" "with too many nested headers" false,
    /// An IP packet that is no DNS traffic: not UDP or TCP, or other ports.
    NotDns = 32 "not_dns" "not DNS" true,
    /// A fragment other than the first: there is no transport header.
    LaterFragment = 33 "later_fragment" "later IP fragments" true,
    /// The ports are those of DNS, but there is no payload (TCP handshakes, acknowledgements).
    DnsNoPayload = 34 "dns_no_payload" "on a DNS port without payload" true,
    /// A DNS message, or a record of one in a log, without a question.
    DnsNoQuestion = 35 "dns_no_question" "DNS messages without a question" true,
    /// A DNS message that breaks off, as captured, before the end of its first question.
    DnsCutShort = 36 "dns_cut_short" "DNS messages cut short in the question" true,
    /// A DNS message whose first question is not well formed.
    DnsMalformed = 37 "dns_malformed" "DNS messages with a malformed question" true,
    /// A DNS answer, where only queries are counted.
    DnsResponse = 38 "dns_response" "DNS responses" true,
    /// A record of a log with an IPv4 and an IPv6 address.
    MixedFamilies = 39 "mixed_families" "log records with IPv4 and IPv6 at once" true,
    /// A record of a log that does not say which protocol and ports there were.
    NoTransportInLog = 40 "no_transport_in_log" "log records without protocol and ports" true,
    /// A record of a log, where packets are wanted.
    LogRecord = 41 "log_record" "log records instead of packets (count, compare, top and flows --unique read logs)" false,
    /// A packet without ports, or whose ports were not captured, where ports are asked for.
    NoPorts = 42 "no_ports" "without ports" true,
    /// A record of a log that lacks an address which the element has.
    NoAddressInLog = 48 "no_address_in_log" "log records without an address" true,
    /// A record of a flow, where DNS messages are wanted: it does not have all names.
    FlowRecord = 49 "flow_record" "flow records instead of DNS messages" true,
    /// A dnstap message of a type that was not asked for.
    DnstapType = 50 "dnstap_type" "dnstap messages of other types" true,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_and_names_are_unique_and_codes_come_back() {
        let (mut names, mut phrases) = (HashSet::new(), HashSet::new());
        for &skip in Skip::ALL {
            assert!(u32::from(skip) < LINK_CODES);
            assert_eq!(Skip::try_from(u32::from(skip)), Ok(skip));
            let name = skip.name();
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert!(names.insert(name));
            assert!(phrases.insert(skip.words()));
        }
        for link in [0, 1, 147, u16::MAX] {
            let skip = Skip::UnsupportedLink(LinkType(link));
            assert_eq!(Skip::try_from(u32::from(skip)), Ok(skip));
            assert!(!skip.has_ip());
        }
        for code in [0, 255, LINK_CODES + 0x1_0000] {
            assert!(Skip::try_from(code).is_err());
        }
    }

    #[test]
    fn unsupported_links_are_named_where_they_have_a_name() {
        assert_eq!(Skip::UnsupportedLink(LinkType(189)).name(), "link_type_usb_linux");
        assert_eq!(Skip::UnsupportedLink(LinkType(189)).words(), "of the link type usb_linux");
        assert_eq!(Skip::UnsupportedLink(LinkType(60_000)).name(), "link_type_60000");
        assert_eq!(Skip::Arp.name(), "arp");
        assert!(Skip::NotDns.has_ip() && !Skip::Arp.has_ip());
    }
}
