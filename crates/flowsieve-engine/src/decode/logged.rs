//! The packet fields that a record of a log has.

use std::net::IpAddr;

use super::{Addresses, Skip};
use crate::trace::LogEntry;

/// The addresses of a record.
///
/// # Errors
///
/// It lacks one of them, or they are not of one family.
pub fn logged_addresses(entry: &LogEntry) -> Result<Addresses, Skip> {
    match (entry.source, entry.destination) {
        (Some(source), Some(destination)) => addresses_of(source, destination),
        _ => Err(Skip::NoAddressInLog),
    }
}

/// These two addresses.
///
/// # Errors
///
/// They are not of one family.
pub(crate) fn addresses_of(source: IpAddr, destination: IpAddr) -> Result<Addresses, Skip> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            Ok(Addresses::V4 { source: source.octets(), destination: destination.octets() })
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            Ok(Addresses::V6 { source: source.octets(), destination: destination.octets() })
        }
        _ => Err(Skip::MixedFamilies),
    }
}
