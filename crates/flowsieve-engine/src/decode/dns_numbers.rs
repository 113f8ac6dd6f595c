//! Names of DNS types and response codes, as the registry of IANA has them.

use crate::trace::{Runs, name_in, number_in};

/// The types that traffic has.
const TYPES: &Runs = &[
    (1, "A NS"),
    (5, "CNAME SOA"),
    (10, "NULL"),
    (12, "PTR HINFO"),
    (15, "MX TXT RP AFSDB"),
    (24, "SIG KEY"),
    (28, "AAAA LOC"),
    (33, "SRV"),
    (35, "NAPTR"),
    (37, "CERT"),
    (39, "DNAME"),
    (41, "OPT APL DS SSHFP IPSECKEY RRSIG NSEC DNSKEY DHCID NSEC3 NSEC3PARAM TLSA SMIMEA"),
    (55, "HIP"),
    (59, "CDS CDNSKEY OPENPGPKEY CSYNC ZONEMD SVCB HTTPS"),
    (99, "SPF"),
    (108, "EUI48 EUI64"),
    (249, "TKEY TSIG IXFR AXFR"),
    (255, "ANY URI CAA"),
];

/// The codes that the head of a message can hold.
const RCODES: &Runs = &[(
    0,
    "NOERROR FORMERR SERVFAIL NXDOMAIN NOTIMP REFUSED YXDOMAIN \
    YXRRSET NXRRSET NOTAUTH NOTZONE DSOTYPENI",
)];

/// The name of a type; of others their number, as RFC 3597 writes it.
pub fn type_name(number: u16) -> String {
    name_in(TYPES, number).map_or_else(|| format!("TYPE{number}"), str::to_owned)
}

/// The name of a response code.
pub fn rcode_name(number: u8) -> String {
    name_in(RCODES, number.into()).map_or_else(|| format!("RCODE{number}"), str::to_owned)
}

/// The number of a type, by its name or as `TYPE65`.
pub fn type_number(name: &str) -> Option<u16> {
    number_in(TYPES, name).or_else(|| name.strip_prefix("TYPE").unwrap_or(name).parse().ok())
}

/// The number of a response code, by its name or as `RCODE3`.
pub fn rcode_number(name: &str) -> Option<u8> {
    let known = number_in(RCODES, name).map(|number| number as u8);
    let number = || name.strip_prefix("RCODE").unwrap_or(name).parse().ok();
    known.or_else(number).filter(|&number: &u8| number < 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_names() {
        assert!(TYPES.is_sorted_by(|one, next| one.0 < next.0));
        let names = [1, 28, 65, 255, 54, 65280].map(type_name);
        assert_eq!(names, ["A", "AAAA", "HTTPS", "ANY", "TYPE54", "TYPE65280"]);
        let names = [0, 3, 5, 11, 15].map(rcode_name);
        assert_eq!(names, ["NOERROR", "NXDOMAIN", "REFUSED", "DSOTYPENI", "RCODE15"]);
        assert!((0..=300).all(|number| type_number(&type_name(number)) == Some(number)));
        assert!((0..16).all(|number| rcode_number(&rcode_name(number)) == Some(number)));
        assert_eq!(
            (type_number("28"), rcode_number("16"), type_number("B")),
            (Some(28), None, None)
        );
    }
}
