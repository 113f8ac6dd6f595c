//! Names of DNS types and response codes, as the registry of IANA has them.

/// The types that traffic has.
const TYPES: &[(u16, &str)] = &[
    (1, "A"),
    (2, "NS"),
    (5, "CNAME"),
    (6, "SOA"),
    (10, "NULL"),
    (12, "PTR"),
    (13, "HINFO"),
    (15, "MX"),
    (16, "TXT"),
    (17, "RP"),
    (18, "AFSDB"),
    (24, "SIG"),
    (25, "KEY"),
    (28, "AAAA"),
    (29, "LOC"),
    (33, "SRV"),
    (35, "NAPTR"),
    (37, "CERT"),
    (39, "DNAME"),
    (41, "OPT"),
    (42, "APL"),
    (43, "DS"),
    (44, "SSHFP"),
    (45, "IPSECKEY"),
    (46, "RRSIG"),
    (47, "NSEC"),
    (48, "DNSKEY"),
    (49, "DHCID"),
    (50, "NSEC3"),
    (51, "NSEC3PARAM"),
    (52, "TLSA"),
    (53, "SMIMEA"),
    (55, "HIP"),
    (59, "CDS"),
    (60, "CDNSKEY"),
    (61, "OPENPGPKEY"),
    (62, "CSYNC"),
    (63, "ZONEMD"),
    (64, "SVCB"),
    (65, "HTTPS"),
    (99, "SPF"),
    (108, "EUI48"),
    (109, "EUI64"),
    (249, "TKEY"),
    (250, "TSIG"),
    (251, "IXFR"),
    (252, "AXFR"),
    (255, "ANY"),
    (256, "URI"),
    (257, "CAA"),
];

/// The codes that the head of a message can hold.
const RCODES: [&str; 12] = [
    "NOERROR",
    "FORMERR",
    "SERVFAIL",
    "NXDOMAIN",
    "NOTIMP",
    "REFUSED",
    "YXDOMAIN",
    "YXRRSET",
    "NXRRSET",
    "NOTAUTH",
    "NOTZONE",
    "DSOTYPENI",
];

/// The name of a type; of others their number, as RFC 3597 writes it.
pub fn type_name(number: u16) -> String {
    let known = TYPES.binary_search_by_key(&number, |&(known, _)| known);
    known.map_or_else(|_| format!("TYPE{number}"), |at| TYPES[at].1.to_owned())
}

/// The name of a response code.
pub fn rcode_name(number: u8) -> String {
    let known = RCODES.get(usize::from(number));
    known.map_or_else(|| format!("RCODE{number}"), |name| (*name).to_owned())
}

/// The number of a type, by its name or as `TYPE65`.
pub fn type_number(name: &str) -> Option<u16> {
    let known = TYPES.iter().find(|(_, known)| *known == name);
    known
        .map(|&(number, _)| number)
        .or_else(|| name.strip_prefix("TYPE").unwrap_or(name).parse().ok())
}

/// The number of a response code, by its name or as `RCODE3`.
pub fn rcode_number(name: &str) -> Option<u8> {
    let known = RCODES.iter().position(|&known| known == name).map(|number| number as u8);
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
